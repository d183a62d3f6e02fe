// Package client is a typed client for version 2 of the OpenWOP wire, as the
// fermata host serves it.
//
//	c, err := client.New("http://127.0.0.1:7411", os.Getenv("FERMATA_API_KEY"))
//	...
//	made, err := c.CreateRun(ctx, client.CreateRunRequest{WorkflowID: "hello"})
//	...
//	for ev, err := range c.Stream(ctx, made.RunID, client.StreamOptions{}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(ev.Sequence, ev.Type, ev.NodeID)
//	}
//
// It owns how a request is sent, repeated and understood: ids projected onto one
// path segment, bounded and jittered retries of what may be repeated, event
// streams that survive a lost connection, and refusals as *Error. Payloads stay
// the bytes that the host sent (json.RawMessage), so that numbers of any size and
// the order of members survive.
//
// It depends on nothing but the standard library and must not know how a host is
// built. The API key goes to the configured origin only: redirects are not
// followed, and no address that the host answers with is ever called.
package client
