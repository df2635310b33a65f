"""What the Helm chart takes from the rest of the project, and what is made of its values."""
