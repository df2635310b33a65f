"""The command line: `oraculo …`. Results go to standard output, everything else to standard error."""
