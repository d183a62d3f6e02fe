// Command fermata is the host and its command line.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fermata-run/fermata"
)

func main() {
	if len(os.Args) < 2 || os.Args[1] != "serve" {
		fmt.Fprintln(os.Stderr, "usage: fermata serve [--listen ADDR] [--data DIR]")
		os.Exit(2)
	}
	fs := flag.NewFlagSet("serve", flag.ExitOnError)
	listen := fs.String("listen", "127.0.0.1:7411", "address")
	data := fs.String("data", "fermata-data", "data folder")
	fs.Parse(os.Args[2:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	h, err := fermata.Open(ctx, fermata.Config{
		DataDir: *data, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), BootstrapKey: os.Getenv("FERMATA_BOOTSTRAP_KEY"),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	if err := h.Start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println("listening on", l.Addr())
	if k := h.FirstKey(); k != "" {
		fmt.Println("first API key:", k)
	}
	srv := &http.Server{Handler: h.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go srv.Serve(l)
	<-ctx.Done()
	stop()
	grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	h.Stop(grace)
	srv.Shutdown(grace)
}
