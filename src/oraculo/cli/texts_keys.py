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
    "data-keys": (
        "Keys of tenants that payloads are sealed with (ORACULO_DATA_KEY). Works on the store.",
        "Chaves dos espaços com que os conteúdos são selados (ORACULO_DATA_KEY). Trabalha no armazenamento.",
    ),
    "data-keys.ls": (
        "List the keys of tenants, without their secrets.",
        "Lista as chaves dos espaços, sem os segredos.",
    ),
    "data-keys.seal": (
        "Seal what is stored in clear or under an older key, of one tenant or of all; a server may be running.",
        "Sela o que está às claras ou sob chave antiga, de um espaço ou de todos; um servidor pode estar rodando.",
    ),
    "data-keys.rotate": (
        "Make a new key for a tenant; what the ones before sealed stays readable.",
        "Cria uma chave nova para um espaço; o que as anteriores selaram continua legível.",
    ),
    "data-keys.rewrap": (
        "Wrap all keys by the present master key; ORACULO_DATA_KEY_OLD names the ones before.",
        "Envolve todas as chaves com a chave mestra atual; ORACULO_DATA_KEY_OLD diz as anteriores.",
    ),
    "data-keys.forget": (
        "Forget the keys of a tenant: what it stored can never be read again. There is no way back.",
        "Esquece as chaves de um espaço: o que ele guardou nunca mais poderá ser lido. Não há volta.",
    ),
    "data-key-none": (
        "set ORACULO_DATA_KEY first: 32 random bytes, as `openssl rand -hex 32` makes them",
        "defina antes ORACULO_DATA_KEY: 32 bytes aleatórios, como `openssl rand -hex 32` os faz",
    ),
    "data-key-sealed": ("{count} rows of {name} were sealed", "{count} linhas de {name} foram seladas"),
    "data-key-made": ("{name} seals with the key {id} from now on", "{name} sela com a chave {id} a partir de agora"),
    "data-key-rewrapped": ("{count} keys were wrapped anew", "{count} chaves foram envolvidas de novo"),
    "data-key-confirm": (
        "Forget the keys of {name}? What it stored can never be read again.",
        "Esquecer as chaves de {name}? O que ele guardou nunca mais poderá ser lido.",
    ),
    "data-key-live": (
        "{name} has {count} orchestrations that are not over: cancel them first",
        "{name} tem {count} orquestrações em andamento: cancele-as antes",
    ),
    "data-key-unknown": ("{name} has no key to forget", "{name} não tem chave a esquecer"),
    "data-key-forgotten": (
        "{count} keys of {name} are forgotten, and {schedules} of its schedules removed",
        "{count} chaves de {name} foram esquecidas, e {schedules} de seus agendamentos removidos",
    ),
    "o.tenant-max-open": (
        "Orchestrations of the tenant that may be open at once.",
        "Orquestrações do espaço que podem estar abertas ao mesmo tempo.",
    ),
    "o.tenant-per-second": (
        "Submissions of the tenant in a second, for each process.",
        "Envios do espaço por segundo, em cada processo.",
    ),
    "o.tenant-dead": (
        "Dead letters of the tenant that may be kept; with as many, it submits nothing more.",
        "Mensagens mortas do espaço que podem ficar guardadas; com tantas, nada mais é aceito dele.",
    ),
    "o.tenant-bytes": (
        "Bytes of request bodies of the tenant in a second, for each process.",
        "Bytes de corpos de pedidos do espaço por segundo, em cada processo.",
    ),
    "o.tenant-streams": (
        "Event streams of the tenant that may be open at once, in each process.",
        "Transmissões de eventos do espaço abertas ao mesmo tempo, em cada processo.",
    ),
    "tenant-name": ("{name!r} does not match {pattern}", "{name!r} não segue {pattern}"),
    "tenant-put": ("{name} is registered", "{name} está registrado"),
    "tenant-keys": ("{name} has {count} keys; revoke them first", "{name} tem {count} chaves; revogue-as antes"),
    "tenant-unknown": ("there is no tenant {name}", "não há espaço {name}"),
    "tenant-removed": ("{name} is forgotten", "{name} foi esquecido"),
    "users": (
        "People who log in at the dashboard with a password (ORACULO_LOCAL_USERS=on). Works on the store.",
        "Pessoas que entram no painel com senha (ORACULO_LOCAL_USERS=on). Trabalha no armazenamento.",
    ),
    "users.add": (
        "Make a user; the password is asked for, or is the first line of standard input.",
        "Cria um usuário; a senha é pedida, ou é a primeira linha da entrada padrão.",
    ),
    "users.ls": ("List users.", "Lista os usuários."),
    "users.passwd": (
        "Give a user another password; the sessions of the user end.",
        "Dá outra senha a um usuário; as sessões dele se encerram.",
    ),
    "users.disable": (
        "Let a user in no more, and end the sessions of the user.",
        "Não deixa mais um usuário entrar e encerra as sessões dele.",
    ),
    "users.enable": ("Let a user in again.", "Deixa um usuário entrar de novo."),
    "users.rm": ("Forget a user; what the user did stays.", "Esquece um usuário; o que ele fez fica."),
    "o.user-role": ("What the user may do; may be repeated.", "O que o usuário pode fazer; pode ser repetido."),
    "o.user-tenant": ("The tenant of the user.", "O espaço do usuário."),
    "user-password": ("Password: ", "Senha: "),
    "user-password-again": ("Once more: ", "Mais uma vez: "),
    "user-password-differs": ("the two are not the same", "as duas não são iguais"),
    "user-kept": ("{name} ({roles}): {status}", "{name} ({roles}): {status}"),
    "user-removed": ("{name} is forgotten", "{name} foi esquecido"),
    "audit.anchor": (
        "Write where every chain of the journal stands, signed with ORACULO_SIGNING_KEY, for `audit verify --anchor`.",
        "Grava onde está cada cadeia do diário, assinado com ORACULO_SIGNING_KEY, para `audit verify --anchor`.",
    ),
    "o.anchor-to": ("The file; keep it elsewhere than the database.", "O arquivo; guarde-o longe do banco de dados."),
    "o.anchor-file": (
        "Compare the journal with this signed anchor, too.",
        "Comparar o diário também com esta âncora assinada.",
    ),
    "o.anchor-public": (
        "The public half of the key that signed the anchor (base64url).",
        "A metade pública da chave que assinou a âncora (base64url).",
    ),
    "anchor-no-key": (
        "ORACULO_SIGNING_KEY is needed: `oraculo keys create --role auditor --sign` shows one",
        "falta ORACULO_SIGNING_KEY: `oraculo keys create --role auditor --sign` mostra uma",
    ),
    "anchor-no-public": (
        "--public-key is needed with --anchor, and not from the database that is verified",
        "--public-key é necessário com --anchor, e não vindo do banco que se verifica",
    ),
    "anchor-wrong": (
        "{path}: it is not signed by the key of --public-key",
        "{path}: não está assinado pela chave de --public-key",
    ),
    "anchor-written": (
        "{count} orchestrations in {to}, signed by {by}",
        "{count} orquestrações em {to}, assinado por {by}",
    ),
    "audit-anchored": (
        "the journal agrees with the stored results and with the signed anchor of {count} orchestrations",
        "o diário concorda com os resultados guardados e com a âncora assinada de {count} orquestrações",
    ),
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
    "o.key-sign": (
        "Make a pair of keys (Ed25519), too, and show its private half once: messages are signed with it.",
        "Fazer também um par de chaves (Ed25519) e mostrar a metade privada uma vez: com ela se assinam mensagens.",
    ),
    "o.key-public": (
        "The public half of a pair that you made yourself (Ed25519, base64url).",
        "A metade pública de um par feito por você (Ed25519, base64url).",
    ),
    "key-signs": (
        "its signing key, for ORACULO_SIGNING_KEY; stored nowhere",
        "sua chave de assinatura, para ORACULO_SIGNING_KEY; não é guardada em lugar algum",
    ),
    "key-sign-twice": (
        "--sign makes a pair, --public-key names one: give one of them",
        "--sign faz um par, --public-key indica um: dê só um deles",
    ),
    "key-revoked": ("{id} is revoked", "{id} foi revogada"),
}
