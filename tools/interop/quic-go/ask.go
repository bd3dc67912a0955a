package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// What the last connection was like.
type facts struct {
	Resumed bool   `json:"resumed"`
	Early   bool   `json:"early"`
	Cipher  string `json:"cipher"`
}

// quic-go ask [flags] ADDRESS: connections one after the other, each with requests at a time. Prints the facts of the
// last connection as JSON.
func askMany(arguments []string) error {
	flags := flag.NewFlagSet("ask", flag.ExitOnError)
	path := flags.String("path", "/", "path of the requests")
	count := flags.Int("count", 1, "requests of a connection")
	connections := flags.Int("connections", 1, "connections, one after the other")
	early := flags.Bool("early", false, "requests go with the hello, where a session is known")
	flags.Parse(arguments)
	to := flags.Arg(0)

	var last facts
	for range *connections {
		config := &quic.Config{TokenStore: tokens, MaxIdleTimeout: patience, HandshakeIdleTimeout: patience}
		method := http.MethodGet
		if *early {
			method = http3.MethodGet0RTT
		}
		var err error
		if last, err = connection(to, method, *path, *count, config); err != nil {
			return err
		}
		// The session and the token come after the handshake.
		if *connections > 1 {
			time.Sleep(200 * time.Millisecond)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(last)
}

func connection(to, method, path string, count int, config *quic.Config) (facts, error) {
	var conn *quic.Conn
	transport := &http3.Transport{
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true,
			ServerName:         "localhost",
			ClientSessionCache: sessions,
		},
		QUICConfig: config,
		Dial: func(ctx context.Context, to string, tls *tls.Config, config *quic.Config) (*quic.Conn, error) {
			var err error
			conn, err = quic.DialAddrEarly(ctx, to, tls, config)
			return conn, err
		},
	}
	defer transport.Close()
	client := &http.Client{Transport: transport, Timeout: patience}
	failed := make(chan error, count)
	one := func() {
		request, err := http.NewRequest(method, "https://"+to+path, nil)
		if err == nil {
			err = checked(client, request)
		}
		failed <- err
	}
	// The first request makes the connection.
	one()
	var group sync.WaitGroup
	for range count - 1 {
		group.Go(one)
	}
	group.Wait()
	for range count {
		if err := <-failed; err != nil {
			return facts{}, err
		}
	}
	<-conn.HandshakeComplete()
	state := conn.ConnectionState()
	cipher := tls.CipherSuiteName(state.TLS.CipherSuite)
	return facts{state.TLS.DidResume, state.Used0RTT, cipher}, nil
}

func checked(client *http.Client, request *http.Request) error {
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != 200 || !bytes.Equal(got, content(request.URL.Path))) {
		err = fmt.Errorf("%s: %s, %d bytes", request.URL.Path, answer.Status, len(got))
	}
	return err
}
