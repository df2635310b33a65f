"""What the commands about keys say, in English and in Portuguese."""

from __future__ import annotations

KEY_TEXTS: dict[str, tuple[str, str]] = {
    "keys": (
        "Keys of the API: who may do what. Works on the store; with --url, asks the server.",
        "Chaves da API: quem pode o quê. Trabalha no armazenamento; com --url, pede ao servidor.",
    ),
    "keys.create": ("Make a key; it is shown this once.", "Cria uma chave; ela é mostrada só esta vez."),
    "keys.ls": ("List keys, newest first, without their secrets.", "Lista as chaves, da mais nova à mais antiga."),
    "keys.rotate": (
        "Give a key a new secret; the one before stays good for --overlap.",
        "Dá um segredo novo a uma chave; o anterior vale ainda por --overlap.",
    ),
    "keys.revoke": ("Make a key useless, and end its sessions.", "Inutiliza uma chave e encerra suas sessões."),
    "tenants": (
        "Tenants, which share an installation and see nothing of each other. Works on the store.",
        "Espaços, que dividem uma instalação e nada veem um do outro. Trabalha no armazenamento.",
    ),
    "tenants.ls": ("List tenants with their limits.", "Lista os espaços com seus limites."),
    "tenants.put": (
        "Register a tenant and set its limits; what is not given has none.",
        "Registra um espaço e define seus limites; o que não se diz fica sem limite.",
    ),
    "tenants.rm": (
        "Forget a tenant that has no keys any more, with its limits; its orchestrations stay.",
        "Esquece um espaço que já não tem chaves, com seus limites; suas orquestrações ficam.",
    ),
    "o.tenant-max-open": (
        "Orchestrations of the tenant that may be open at once.",
        "Orquestrações do espaço que podem estar abertas ao mesmo tempo.",
    ),
    "o.tenant-per-second": (
        "Submissions of the tenant in a second, for each process.",
        "Envios do espaço por segundo, em cada processo.",
    ),
    "tenant-name": ("{name!r} does not match {pattern}", "{name!r} não segue {pattern}"),
    "tenant-put": ("{name} is registered", "{name} está registrado"),
    "tenant-keys": ("{name} has {count} keys; revoke them first", "{name} tem {count} chaves; revogue-as antes"),
    "tenant-unknown": ("there is no tenant {name}", "não há espaço {name}"),
    "tenant-removed": ("{name} is forgotten", "{name} foi esquecido"),
    "acl": ("Users of a broker with least rights.", "Usuários de um broker com o mínimo de direitos."),
    "acl.export": (
        "Write users for the orchestrator and for one worker of each queue; their passwords are shown this once.",
        "Escreve usuários para o orquestrador e para um trabalhador de cada fila; as senhas são mostradas só esta vez.",
    ),
    "o.acl-queue": (
        "A queue of a worker, like escavador_youtube; may be repeated.",
        "Uma fila de um trabalhador, como escavador_youtube; pode ser repetida.",
    ),
    "o.acl-notice": (
        "A queue that notices go to (notificar.fila); may be repeated.",
        "Uma fila que recebe avisos (notificar.fila); pode ser repetida.",
    ),
    "o.acl-vhost": ("The virtual host, of RabbitMQ.", "O virtual host, do RabbitMQ."),
    "acl-once": (
        "The users and their passwords, shown this once; they go into the URLs of ORACULO_BROKER:",
        "Os usuários e suas senhas, mostrados só esta vez; vão nas URLs de ORACULO_BROKER:",
    ),
    "token-keys": (
        "Keys that sign the tokens of orders (ORACULO_RESULT_TOKENS). Works on the store.",
        "Chaves que assinam os tokens das ordens (ORACULO_RESULT_TOKENS). Trabalha no armazenamento.",
    ),
    "token-keys.ls": (
        "List the keys of tokens, the one that signs last first.",
        "Lista as chaves dos tokens, primeiro a que assina por último.",
    ),
    "token-keys.rotate": (
        "Make a new key, which signs a minute later; tokens of the others are right for --overlap more.",
        "Cria uma chave nova, que assina um minuto depois; os tokens das outras valem ainda por --overlap.",
    ),
    "o.token-overlap": (
        "How long tokens of the keys before stay right, for example 30d (default: 7d); longer than any ticket.",
        "Por quanto tempo valem ainda os tokens das chaves anteriores (padrão: 7d); mais que qualquer ticket.",
    ),
    "token-key-made": ("{kid} signs from {at} on", "{kid} assina a partir de {at}"),
    "o.key-role": ("What the key may do.", "O que a chave pode."),
    "o.key-tenant": ("The tenant that it belongs to.", "O espaço a que pertence."),
    "o.key-queue": (
        "A queue that a worker (role trabalhador) may lease from; may be repeated.",
        "Uma fila de que um trabalhador pode arrendar; pode ser repetida.",
    ),
    "o.key-expires": (
        "How long it is good, for example 90d; without it, until it is revoked.",
        "Por quanto tempo vale, por exemplo 90d; sem isto, até ser revogada.",
    ),
    "o.key-max-open": (
        "How many orchestrations it may have open at once.",
        "Quantas orquestrações pode ter abertas ao mesmo tempo.",
    ),
    "o.key-per-second": ("How many it may submit in a second.", "Quantas pode enviar por segundo."),
    "o.key-note": ("A note for people.", "Uma nota para pessoas."),
    "o.key-overlap": (
        "How long the secret before stays good, for example 1h (default: 1d).",
        "Por quanto tempo o segredo anterior ainda vale, por exemplo 1h (padrão: 1d).",
    ),
    "o.key-url": (
        "Ask this server; without it, work on the store of ORACULO_STORE.",
        "Pede a este servidor; sem isto, trabalha no armazenamento de ORACULO_STORE.",
    ),
    "key-once": (
        "{id} ({role}): this is the only time that the key is shown",
        "{id} ({role}): é a única vez que a chave é mostrada",
    ),
    "key-revoked": ("{id} is revoked", "{id} foi revogada"),
}
