package pgtest

import (
	"context"
	"errors"
	"syscall"
)

var errAbsent = errors.New("servers for tests are started on Unix only")

// Cluster is a running server.
type Cluster struct{}

func start() (*Cluster, error) { return nil, errAbsent }

// Start starts the server.
func (c *Cluster) Start() error { return errAbsent }

// Stop ends the server.
func (c *Cluster) Stop(syscall.Signal) {}

// Stand makes the server stand still, or go on.
func (c *Cluster) Stand(syscall.Signal) error { return errAbsent }

// Close ends the server.
func (c *Cluster) Close() {}

// Address is where a database is found.
func (c *Cluster) Address(string) string { return "" }

// Exec executes a statement in a database.
func (c *Cluster) Exec(context.Context, string, string) error { return errAbsent }

// Query reads the first column of what some statements answer.
func (c *Cluster) Query(context.Context, string, string) ([]string, error) { return nil, errAbsent }
