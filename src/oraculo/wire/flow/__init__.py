"""What Fluxo C says on the wire: decisions and plans in, tickets out, results in; as Avro or as JSON."""
