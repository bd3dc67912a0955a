package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const (
	partBytes  = 300_000
	slowParts  = 24
	slowPause  = 250 * time.Millisecond
	slowFormat = "%4d"
)

// The key of a request's connection.
type ofRequest struct{}

// The content of a path, as the origin in Python has it.
func content(path string) []byte {
	size := 0
	switch path {
	case "/big":
		size = bigBytes
	case "/part":
		size = partBytes
	case "/slow":
		var all []byte
		for number := range slowParts {
			all = fmt.Appendf(all, slowFormat, number)
		}
		return all
	default:
		return []byte(path)
	}
	all := make([]byte, size)
	for at := range all {
		all[at] = byte(at)
	}
	return all
}

func answer(writer http.ResponseWriter, request *http.Request) {
	uploaded, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	all := content(request.URL.Path)
	if len(uploaded) > 0 {
		all = uploaded
	}
	writer.Header().Set("content-length", fmt.Sprint(len(all)))
	if conn, is := request.Context().Value(ofRequest{}).(*quic.Conn); is {
		writer.Header().Set("x-early", fmt.Sprint(conn.ConnectionState().Used0RTT))
	}
	if request.URL.Path != "/slow" {
		writer.Write(all)
		return
	}
	for part := range slowParts {
		time.Sleep(slowPause)
		size := len(all) / slowParts
		writer.Write(all[part*size : (part+1)*size])
		writer.(http.Flusher).Flush()
	}
}

// quic-go serve CERTIFICATE: serves on a port of its own, which it prints, and on a second one where clients must show
// that they have their address (Retry).
func serve(pem string) error {
	pair, err := tls.LoadX509KeyPair(pem, pem+".key")
	if err != nil {
		return err
	}
	server := &http3.Server{
		Handler: http.HandlerFunc(answer),
		ConnContext: func(ctx context.Context, conn *quic.Conn) context.Context {
			return context.WithValue(ctx, ofRequest{}, conn)
		},
	}
	failed := make(chan error)
	for _, retries := range []bool{false, true} {
		socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return err
		}
		transport := &quic.Transport{
			Conn:                socket,
			VerifySourceAddress: func(net.Addr) bool { return retries },
		}
		config := http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}})
		listener, err := transport.ListenEarly(config, &quic.Config{Allow0RTT: true})
		if err != nil {
			return err
		}
		fmt.Println(socket.LocalAddr().(*net.UDPAddr).Port)
		go func() { failed <- server.ServeListener(listener) }()
	}
	return <-failed
}
