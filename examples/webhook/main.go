// Command webhook is a receiver: it verifies what a host delivers, drops what it has
// had before, and prints one line for each event.
//
//	export FERMATA_WEBHOOK_SECRET=$(openssl rand -base64 32 | sed 's/^/whsec_/')
//	go run ./examples/webhook
//
// See docs/webhooks.md for the host's side.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/fermata-run/fermata/client"
)

func main() {
	secrets := strings.Fields(os.Getenv("FERMATA_WEBHOOK_SECRET")) // two while one is rotated
	if len(secrets) == 0 {
		log.Fatal("FERMATA_WEBHOOK_SECRET holds no secret")
	}
	srv := &http.Server{
		Addr: cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:7422"), Handler: receiver(os.Stdout, secrets...), ReadHeaderTimeout: 5 * time.Second,
	}
	log.Printf("listening on http://%s", srv.Addr)
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}

// receiver acts on deliveries. An error would have the host deliver again.
func receiver(out io.Writer, secrets ...string) http.Handler {
	return &client.Receiver{Secrets: secrets, Take: func(_ context.Context, d *client.Delivery) error {
		_, err := fmt.Fprintf(out, "%s %s #%d\n", d.RunID, d.EventType, d.Sequence)
		return err
	}}
}
