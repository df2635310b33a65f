"""The proof that ships with the product: worlds made from one seed, in which everything that can go wrong does.

`world` runs the real engine over the real SQLite store with a model of everything else; `core_world` runs the pure core
alone, faster. `invariants` and `watch` say what must hold at every step, `mutants` are deliberately broken variants of
our own code that the worlds must notice, and `prove` is the command.
"""
