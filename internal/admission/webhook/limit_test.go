// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// entered counts the calls that reach it, and blocks them until they are allowed to
// finish.
type entered struct {
	in  chan string
	out chan struct{}
}

func (e *entered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.in <- strconv.Itoa(len(body))
	<-e.out
}

// opened starts a limited server, with a timeout that tests can wait for.
func opened(t *testing.T, timeout time.Duration) (*entered, string) {
	t.Helper()
	e := &entered{in: make(chan string, maxCalls+1), out: make(chan struct{})}
	l := limit(e)
	l.timeout = timeout
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return e, server.URL
}

func post(t *testing.T, url string, body io.Reader) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Error(err)
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestCallThatIsTooLargeIsNotRead(t *testing.T) {
	g := NewWithT(t)
	e, url := opened(t, time.Minute)
	close(e.out)
	g.Expect(post(t, url, bytes.NewReader(make([]byte, maxBody)))).To(Equal(http.StatusOK))
	g.Expect(<-e.in).To(Equal(strconv.Itoa(maxBody)))
	connection := announced(t, url, maxBody+1)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(response.StatusCode).To(Equal(http.StatusRequestEntityTooLarge))
	g.Expect(post(t, url, io.MultiReader(strings.NewReader("of a length that nobody knows")))).To(Equal(http.StatusRequestEntityTooLarge))
	g.Expect(e.in).To(BeEmpty())
}

func TestCallsAtATimeAreLimited(t *testing.T) {
	g := NewWithT(t)
	e, url := opened(t, time.Second)
	answers := make(chan int, maxCalls)
	for range maxCalls {
		go func() { answers <- post(t, url, strings.NewReader("a")) }()
	}
	for range maxCalls {
		g.Eventually(e.in).Should(Receive())
	}
	g.Expect(post(t, url, strings.NewReader("b"))).To(Equal(http.StatusServiceUnavailable), "it waits for as long as the API server does")
	close(e.out)
	for range maxCalls {
		g.Eventually(answers).Should(Receive(Equal(http.StatusOK)))
	}
	g.Expect(post(t, url, strings.NewReader("c"))).To(Equal(http.StatusOK))
}

func TestSlowSendersKeepNobodyOut(t *testing.T) {
	g := NewWithT(t)
	e, url := opened(t, 200*time.Millisecond)
	close(e.out)
	for range maxCalls {
		announced(t, url, 10)
	}
	g.Eventually(func() int { return post(t, url, strings.NewReader("a")) }).Should(Equal(http.StatusOK))
}

// announced starts a call with a content length, and sends no body.
func announced(t *testing.T, url string, length int) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if _, err := fmt.Fprintf(connection, "POST / HTTP/1.1\r\nHost: webhook\r\nContent-Length: %d\r\n\r\n", length); err != nil {
		t.Fatal(err)
	}
	return connection
}
