"""Joins the core to the ports; knows no technology."""
