// Package postgres is the backend for several replicas on one database: native SQL
// over pgx. Steps of different runs share a transaction and two round trips
// (writer.go); everything else is a short transaction of its own. Nothing depends on
// a session: it works behind a pooler that hands out a connection per transaction.
//
// The SQL stays within what PostgreSQL, CockroachDB, YugabyteDB and Citus share;
// sql_test.go holds it to that. Who is alive is decided by the database's clock
// (instances.go). A transaction that was refused because of others is tried again;
// a commit whose answer was lost is looked up, never assumed (resolve.go).
package postgres
