// FerretDB with its data in SQLite files, on 127.0.0.1: ferretdb PORT FOLDER.
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	slog.SetLogLoggerLevel(slog.LevelWarn)
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:" + os.Args[1]},
		Handler:   "sqlite",
		SQLiteURL: "file:" + os.Args[2] + "/?_pragma=synchronous(normal)", // a kill costs nothing, a power cut might
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := server.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
