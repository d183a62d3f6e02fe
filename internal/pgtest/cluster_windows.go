package pgtest

import (
	"context"
	"errors"
	"syscall"
)

// ErrAbsent says that there is no PostgreSQL.
var ErrAbsent = errors.New("servers for tests are started on Unix only")

// Cluster is a running server.
type Cluster struct{}

func start() (*Cluster, error) { return nil, ErrAbsent }

// Launch starts a server.
func Launch(string, ...string) (*Cluster, error) { return nil, ErrAbsent }

// PID is the server's process.
func (c *Cluster) PID() int { return 0 }

// Version is what the server is.
func (c *Cluster) Version(context.Context) (string, error) { return "", ErrAbsent }

// Start starts the server.
func (c *Cluster) Start() error { return ErrAbsent }

// Stop ends the server.
func (c *Cluster) Stop(syscall.Signal) {}

// Stand makes the server stand still, or go on.
func (c *Cluster) Stand(syscall.Signal) error { return ErrAbsent }

// Close ends the server.
func (c *Cluster) Close() {}

// Address is where a database is found.
func (c *Cluster) Address(string) string { return "" }

// Exec executes a statement in a database.
func (c *Cluster) Exec(context.Context, string, string) error { return ErrAbsent }

// Query reads the first column of what some statements answer.
func (c *Cluster) Query(context.Context, string, string) ([]string, error) { return nil, ErrAbsent }
