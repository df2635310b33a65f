"""What the runtime needs of the world: one protocol per file, no technology."""
