package fermata_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http/httptest"
	"os"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/client"
)

const refund = `{"id": "refund", "name": "Refund", "version": "1",
	"edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {},
	"nodes": [{"id": "gate", "typeId": "core.approvalGate", "name": "Refund?", "position": {"x": 0, "y": 0}, "inputs": {},
		"config": {"title": "Refund order 7?", "requiredApprovals": 2, "approverGroupRefs": ["finance"]}}]}`

// Two people of a group open a gate, each with a key of their own.
func Example_approvals() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fermata")
	check(err)
	defer os.RemoveAll(dir)
	host, err := fermata.Open(ctx, fermata.Config{DataDir: dir})
	check(err)
	check(host.Start(ctx))
	defer host.Stop(ctx)
	server := httptest.NewServer(host.Handler())
	defer server.Close()

	admin := host.Client()
	_, err = admin.PutWorkflow(ctx, json.RawMessage(refund))
	check(err)
	run, err := admin.CreateRun(ctx, client.CreateRunRequest{WorkflowID: "refund"})
	check(err)
	for _, name := range []string{"ann", "bob"} {
		key, err := admin.CreateKey(ctx, client.NewKey{
			Name: name, Scopes: []string{"approvals:respond", "runs:read"}, Groups: []string{"finance"},
		})
		check(err)
		person, err := client.New(server.URL, key.Key)
		check(err)
		page, err := person.ListInterrupts(ctx, client.PageOptions{})
		check(err)
		for _, i := range page.Interrupts {
			if i.MayAnswer {
				_, err = person.ResolveInterrupt(ctx, i.RunID, i.NodeID, json.RawMessage(`{"action":"accept"}`))
				check(err)
			}
		}
		now, err := admin.GetRun(ctx, run.RunID)
		check(err)
		fmt.Println(name, now.Status)
	}
	// Output:
	// ann waiting-approval
	// bob completed
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
