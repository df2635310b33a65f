"""Why a run is as it is: its decisions as sentences, read from its journal and its state. Nothing is decided again."""
