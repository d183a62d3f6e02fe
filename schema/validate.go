package schema

import (
	"errors"
	"fmt"
	"sync"
)

// ErrUnknown says that there is no schema, or no definition, of that name.
var ErrUnknown = errors.New("no such schema")

// ErrUnknownType says that an event type is neither the protocol's nor a vendor's.
var ErrUnknownType = errors.New("no such event type")

// Validate checks a document against the schema called name. A document that does
// not satisfy it gives an *Invalid.
//
// Of ids and run-event-payloads only the definitions describe values: use
// ValidateDef and ValidatePayload.
func Validate(name string, instance []byte) error {
	if _, ok := V2(name); !ok {
		return fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	return validateAt(name, "", instance)
}

// ValidateDef checks a value against one definition of a schema:
// ValidateDef("ids", "runId", value).
func ValidateDef(name, def string, instance []byte) error {
	if _, ok := V2(name); !ok {
		return fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	defs, err := definitions(name)
	if err != nil {
		return err
	}
	if _, ok := defs[def]; !ok {
		return fmt.Errorf("%w: %q has no definition %q", ErrUnknown, name, def)
	}
	return validateAt(name, def, instance)
}

// ValidatePayload checks the payload of an event of the given type. A vendor's
// type may carry any JSON value; a type that is not registered and has not a
// vendor's form gives ErrUnknownType.
func ValidatePayload(eventType string, payload []byte) error {
	types, err := payloadTypes()
	if err != nil {
		return err
	}
	if def, ok := types[eventType]; ok {
		return validateAt("run-event-payloads", def, payload)
	}
	vendor, err := compiled(location("run-event", "vendorType"))
	if err != nil {
		return err
	}
	if vendor.Validate(eventType) != nil {
		return fmt.Errorf("%w: %q", ErrUnknownType, eventType)
	}
	if _, err := decode(payload); err != nil {
		return malformed("run-event-payloads", err)
	}
	return nil
}

func location(name, def string) string {
	if def == "" {
		return Prefix + name
	}
	return Prefix + name + "#/$defs/" + def
}

func validateAt(name, def string, instance []byte) error {
	s, err := compiled(location(name, def))
	if err != nil {
		return err
	}
	v, err := decode(instance)
	if err != nil {
		return malformed(name, err)
	}
	if err := s.Validate(v); err != nil {
		return invalid(name, err)
	}
	return nil
}

func definitions(name string) (map[string]any, error) {
	b, _ := V2(name)
	doc, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	defs, _ := doc.(map[string]any)["$defs"].(map[string]any)
	return defs, nil
}

// payloadTypes is the index from event type to definition, read once.
var payloadTypes = sync.OnceValues(func() (map[string]string, error) {
	b, _ := V2("run-event-payloads")
	doc, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("schema run-event-payloads: %w", err)
	}
	index, _ := doc.(map[string]any)["types"].(map[string]any)
	types := make(map[string]string, len(index))
	for t, def := range index {
		types[t], _ = def.(string)
	}
	return types, nil
})
