"""What `oraculo dev` says, in English and in Portuguese."""

from __future__ import annotations

DEV_TEXTS: dict[str, tuple[str, str]] = {
    "dev": (
        "Run a server and the workers of a Python file; the workers start again when a file changes.",
        "Sobe um servidor e os workers de um arquivo Python; os workers recomeçam quando um arquivo muda.",
    ),
    "o.dev-file": ("A Python file with a Worker in it.", "Um arquivo Python com um Worker."),
    "dev-no-file": ("{file}: there is no such Python file", "{file}: não há tal arquivo Python"),
    "dev.watches": ("watches", "observa"),
    "dev.next": (
        "a Plan of the same file is handed in by: oraculo submit {file} --watch",
        "um Plan do mesmo arquivo é entregue com: oraculo submit {file} --watch",
    ),
    "dev.next-url": (
        "a Plan of the same file is handed in by: oraculo submit {file} --watch --url {url}",
        "um Plan do mesmo arquivo é entregue com: oraculo submit {file} --watch --url {url}",
    ),
    "dev.loaded": ("workers loaded: {queues}", "workers carregados: {queues}"),
    "dev.failed": (
        "the file cannot be loaded; orders wait until it can",
        "o arquivo não pode ser carregado; as ordens esperam até que possa",
    ),
    "dev.ended": (
        "the workers ended with status {status}; they start again when a file changes",
        "os workers terminaram com status {status}; recomeçam quando um arquivo mudar",
    ),
    "dev.no-worker": (
        "{file}: there is no Worker with a function in it: worker = Worker(), then @worker.collector(…)",
        "{file}: não há Worker com uma função: worker = Worker(), depois @worker.collector(…)",
    ),
}
