// Package schema owns the wire as JSON Schema 2020-12, written here: one file
// per document in v2/, embedded, each identified as urn:fermata:schema:v2:<name>
// and referring to the others by that identifier. It answers two questions: what
// is the schema of a document, and does this document satisfy it.
//
// It must not know how a host works: no run, store, route or error table. What
// a schema cannot say (a run that exists, a node that is connected) is checked
// elsewhere. The schemas follow the protocol's shapes, with sentences of our own;
// where its sources disagree, DESIGN.md says which one they follow.
//
// A new document is one file in v2/. A new event type is one definition in
// v2/run-event-payloads.json, one row of its types, and one row of registeredType
// in v2/run-event.json.
//
// Nothing is parsed or compiled before it is first asked for.
package schema
