"""Service levels at work: watching, telling, delivering."""
