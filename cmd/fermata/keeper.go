package main

import (
	"context"
	"io"

	"github.com/fermata-run/fermata"
	"github.com/fermata-run/fermata/internal/cli"
)

// keeper implements cli.Keeper.
type keeper struct{}

// Backup implements cli.Keeper.
func (keeper) Backup(ctx context.Context, from string, w io.Writer) (fermata.Moved, error) {
	return fermata.Backup(ctx, from, w)
}

// Verify implements cli.Keeper.
func (keeper) Verify(r io.Reader) (fermata.BackupHeader, fermata.Moved, error) {
	return fermata.VerifyBackup(r)
}

// Restore implements cli.Keeper.
func (keeper) Restore(ctx context.Context, r io.Reader, to string) (fermata.BackupHeader, fermata.Moved, error) {
	return fermata.Restore(ctx, r, to)
}

// Copy implements cli.Keeper.
func (keeper) Copy(ctx context.Context, from, to string, online bool) (fermata.Moved, error) {
	return fermata.CopyStore(ctx, from, to, online)
}

// Examine implements cli.Keeper.
func (keeper) Examine(ctx context.Context, address string) (out []cli.Finding) {
	for _, f := range fermata.ExamineStore(ctx, address) {
		out = append(out, cli.Finding{Check: f.Check, OK: f.OK, Detail: f.Detail, Fix: f.Fix})
	}
	return out
}
