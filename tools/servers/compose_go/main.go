// Reads compose files as Docker Compose does (schema, interpolation, profiles, dependencies) and writes the project as
// JSON. It needs no container engine.
//
//	compose-config [--file compose.yaml] [--env-file .env]... [--profile name]...
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

type list []string

func (l *list) String() string { return fmt.Sprint(*l) }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

func run() error {
	var files, environments, profiles list
	flag.Var(&files, "file", "compose file")
	flag.Var(&environments, "env-file", "environment file")
	flag.Var(&profiles, "profile", "profile")
	flag.Parse()
	options, err := cli.NewProjectOptions(
		files,
		cli.WithOsEnv,
		cli.WithEnvFiles(environments...),
		cli.WithDotEnv,
		cli.WithDefaultProfiles(profiles...),
		cli.WithResolvedPaths(false),
	)
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(project)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
