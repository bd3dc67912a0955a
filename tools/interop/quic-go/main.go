// Talks HTTP/3 to a server with quic-go: quic-go ADDRESS EARLY. The origin behind the server answers /big with
// 3,072,000 bytes 0, 1, …, 255, 0, …, and everything else with what was uploaded, or with the path.
// The server at EARLY takes early data and answers with `ssl_fc_early_rcvd`.
//
// quic-go ask … and quic-go serve …: see ask.go and serve.go.
//
// quic-go reset ADDRESS says `ready` when it has a connection, waits for a line, and then wants a stateless
// reset.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const (
	bigBytes = 256 * 12_000
	patience = 60 * time.Second
)

var (
	address, early string
	sessions       = tls.NewLRUClientSessionCache(10)
	tokens         = quic.NewLRUTokenStore(10, 10)
)

// A client with connections of its own.
func client() (*http.Client, func()) {
	transport := &http3.Transport{
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true,
			ServerName:         "localhost",
			ClientSessionCache: sessions,
		},
		QUICConfig: &quic.Config{},
	}
	return &http.Client{Transport: transport, Timeout: patience}, func() { transport.Close() }
}

func ask(client *http.Client, method, path string, body io.Reader) ([]byte, error) {
	request, err := http.NewRequest(method, "https://"+address+path, body)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err == nil && (answer.StatusCode != 200 || answer.Proto != "HTTP/3.0") {
		err = fmt.Errorf("%s %s: %s %s", method, path, answer.Proto, answer.Status)
	}
	return got, err
}

// Many requests at a time, with downloads and uploads among them.
func requests(client *http.Client) error {
	big := make([]byte, bigBytes)
	for at := range big {
		big[at] = byte(at)
	}
	upload := bytes.Repeat([]byte("0123456789abcdef"), 50_000)
	var group sync.WaitGroup
	failed := make(chan error, 1000)
	for number := range 120 {
		group.Go(func() {
			method, path, body, wanted := "GET", fmt.Sprintf("/%d", number), []byte(nil), []byte(nil)
			switch {
			case number%20 == 0:
				path, wanted = "/big", big
			case number%20 == 1:
				method, body, wanted = "POST", upload, upload
			default:
				wanted = []byte(path)
			}
			got, err := ask(client, method, path, bytes.NewReader(body))
			if err == nil && !bytes.Equal(got, wanted) {
				err = fmt.Errorf("%s: %d bytes of %d, or other ones", path, len(got), len(wanted))
			}
			if err != nil {
				failed <- err
			}
		})
	}
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// An upload without a length, in parts, whose end comes alone.
func stream(client *http.Client) error {
	reader, writer := io.Pipe()
	var sent bytes.Buffer
	go func() {
		for number := range 50 {
			part := strings.Repeat(fmt.Sprint(number), 1000)
			sent.WriteString(part)
			io.WriteString(writer, part)
		}
		writer.Close()
	}()
	got, err := ask(client, "POST", "/stream", reader)
	if err == nil && !bytes.Equal(got, sent.Bytes()) {
		err = errors.New("another upload came")
	}
	return err
}

// Requests that are given up at all times.
func cancels(client *http.Client) error {
	for number := range 200 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(number%20)*time.Millisecond)
		request, err := http.NewRequestWithContext(ctx, "GET", "https://"+address+"/big", nil)
		if err != nil {
			cancel()
			return err
		}
		if answer, err := client.Do(request); err == nil {
			io.CopyN(io.Discard, answer.Body, int64(number)*1000)
			answer.Body.Close()
		}
		cancel()
	}
	got, err := ask(client, "GET", "/after", nil)
	if err == nil && string(got) != "/after" {
		err = fmt.Errorf("after cancels: %q", got)
	}
	return err
}

// The second connection resumes the session of the first.
func resumption() error {
	for number := range 2 {
		client, end := client()
		request, err := http.NewRequest("GET", "https://"+address+"/resumed", nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		resumed := answer.TLS != nil && answer.TLS.DidResume
		if number == 1 && !resumed {
			return errors.New("no session was resumed")
		}
		// The ticket comes after the handshake.
		time.Sleep(100 * time.Millisecond)
		end()
	}
	return nil
}

// A request that goes with the hello of the second connection.
func earlyData() error {
	for number, wanted := range []string{"0", "1"} {
		var conn *quic.Conn
		transport := &http3.Transport{
			TLSClientConfig: &tls.Config{
				InsecureSkipVerify: true,
				ServerName:         "localhost",
				ClientSessionCache: sessions,
			},
			QUICConfig: &quic.Config{TokenStore: tokens},
			Dial: func(ctx context.Context, to string, tls *tls.Config, config *quic.Config) (*quic.Conn, error) {
				var err error
				conn, err = quic.DialAddrEarly(ctx, to, tls, config)
				return conn, err
			},
		}
		request, err := http.NewRequest(http3.MethodGet0RTT, "https://"+early+"/", nil)
		if err != nil {
			return err
		}
		answer, err := (&http.Client{Transport: transport, Timeout: patience}).Do(request)
		if err != nil {
			return err
		}
		got, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		answer.Body.Close()
		<-conn.HandshakeComplete()
		if string(got) != wanted || conn.ConnectionState().Used0RTT != (number == 1) {
			return fmt.Errorf("connection %d: %q, 0-RTT %v", number, got, conn.ConnectionState().Used0RTT)
		}
		// The session and the token come after the handshake.
		time.Sleep(100 * time.Millisecond)
		transport.Close()
	}
	return nil
}

func run() error {
	client, end := client()
	defer end()
	for _, test := range []struct {
		name string
		run  func() error
	}{
		{"requests", func() error { return requests(client) }},
		{"an upload in parts", func() error { return stream(client) }},
		{"requests that are given up", func() error { return cancels(client) }},
		{"requests after them", func() error { return requests(client) }},
		{"resumption", resumption},
		{"early data", earlyData},
	} {
		if err := test.run(); err != nil {
			return fmt.Errorf("%s: %w", test.name, err)
		}
	}
	return nil
}

// The server does not know the connection any more.
func reset() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	config := &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", NextProtos: []string{"h3"}}
	conn, err := quic.DialAddr(ctx, address, config, nil)
	if err != nil {
		return err
	}
	stream, err := conn.OpenUniStream()
	if err != nil {
		return err
	}
	fmt.Println("ready")
	fmt.Scanln()
	// A stream of an unknown type (RFC 9114 section 9).
	stream.Write(append([]byte{0x21}, make([]byte, 100)...))
	select {
	case <-conn.Context().Done():
		err = context.Cause(conn.Context())
	case <-ctx.Done():
		err = ctx.Err()
	}
	var wanted *quic.StatelessResetError
	if errors.As(err, &wanted) {
		return nil
	}
	return fmt.Errorf("no reset: %w", err)
}

func dispatch(arguments []string) error {
	switch arguments[0] {
	case "reset":
		address = arguments[1]
		return reset()
	case "ask":
		return askMany(arguments[1:])
	case "serve":
		return serve(arguments[1])
	}
	address, early = arguments[0], arguments[1]
	if err := run(); err != nil {
		return err
	}
	fmt.Println("interop: HTTP/3 with quic-go: requests, uploads, downloads, cancels, resumption, early data: ok")
	return nil
}

func main() {
	if err := dispatch(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "quic-go:", err)
		os.Exit(1)
	}
}
