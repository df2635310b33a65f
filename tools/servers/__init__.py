"""Real servers for tests, chaos and benchmarks: each on its own port, in its own directory.

    with RabbitMQ(folder) as server:
        print(server.url)

`make services` installs what they need (tools/servers/install.py). Only the standard library is used here.
"""
