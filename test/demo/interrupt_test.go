// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// A server may close a connection while a request is on its way. That is no reason to end.
func TestConnectionThatClosesDoesNotEndTheDemo(t *testing.T) {
	ctx, _, release := interruptible(t.Context())
	defer release()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	connection, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Close()
	for err = nil; !errors.Is(err, syscall.EPIPE); time.Sleep(10 * time.Millisecond) {
		_, err = connection.Write([]byte("any"))
	}
	select {
	case <-ctx.Done():
		t.Error("it ends")
	case <-time.After(500 * time.Millisecond):
	}
}

// If nobody reads the output any more, as after a pipe to head, the demo ends, and cleans up.
func TestReaderThatIsGoneEndsTheDemo(t *testing.T) {
	ctx, interrupt, release := interruptible(t.Context())
	defer release()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Close() }()
	p := newPrinter(writer)
	p.lost = func() { interrupt(syscall.SIGPIPE) }
	p.note("somebody reads")
	if ctx.Err() != nil {
		t.Error("it ends while somebody reads")
	}
	_ = reader.Close()
	p.note("nobody reads")
	<-ctx.Done()
}
