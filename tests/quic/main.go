// Command quic is the client of HTTP/3 in the tests: it does what each line of its input says (JSON), and answers with a
// line. Its arguments are the address of the server and a file of authorities.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
	"github.com/quic-go/quic-go/quicvarint"
)

type order struct {
	// What to do: ask, open, close, knock, raw, uni, resets, stall, tunnel, move, load, mixed, race, end.
	Do string `json:"do"`
	// The connection; one that is not known is opened.
	On string `json:"on"`
	// The address instead of that of the arguments.
	To          string            `json:"to"`
	Method      string            `json:"method"`
	Path        string            `json:"path"`
	Host        string            `json:"host"`
	Fields      map[string]string `json:"fields"`
	Content     int               `json:"content"`
	Chunked     bool              `json:"chunked"`
	Trailers    map[string]string `json:"trailers"`
	Count       int               `json:"count"`
	Bytes       string            `json:"bytes"`
	Ends        bool              `json:"ends"`
	Certificate []string          `json:"certificate"`
	// Milliseconds: until an end is given up, and until a request is.
	Wait int `json:"wait"`
	// A file that ends a load.
	Until string `json:"until"`
	// Whether the connection that is opened will be moved.
	Moves bool `json:"moves"`
	Delay int  `json:"delay"`
	// The memory of sessions and tokens that the connection shares with others.
	Memory string `json:"memory"`
	// Whether it begins with early data, and without a token that proves the client's address.
	Early    bool `json:"early"`
	Unproven bool `json:"unproven"`
	// Whether it is one of QUIC alone: nothing of HTTP/3 is sent but that of the orders.
	Bare bool `json:"bare"`
	// The fields of a request that is sent as it stands, before the bytes.
	Lines [][2]string `json:"lines"`
	// The protocol of an extended CONNECT.
	Protocol string `json:"protocol"`
	// Of a race: the bytes of the control stream, and the requests.
	Control string        `json:"control"`
	Races   [][][2]string `json:"races"`
	// Of mixed requests: how many, and which.
	Requests int    `json:"requests"`
	Parts    []part `json:"parts"`
}

// A request whose answer is known.
type part struct {
	Method  string `json:"method"`
	Path    string `json:"path"`
	Range   string `json:"range"`
	Content int    `json:"content"`
	Status  int    `json:"status"`
	Sum     string `json:"sum"`
}

type answer struct {
	Status   int                 `json:"status"`
	Protocol string              `json:"protocol"`
	Fields   map[string][]string `json:"fields"`
	Trailers map[string][]string `json:"trailers"`
	Interim  []int               `json:"interim"`
	Length   int                 `json:"length"`
	Sum      string              `json:"sum"`
	Text     string              `json:"text"`
	Error    string              `json:"error"`
	Code     int64               `json:"code"`
	// Of a load: requests that were answered, connections that a server ended as it should, and requests that were lost.
	Asked int64 `json:"asked"`
	Moved int64 `json:"moved"`
	Lost  int64 `json:"lost"`
	// The connection's early data was accepted, its session was resumed, and its cipher.
	Early   bool   `json:"early"`
	Resumed bool   `json:"resumed"`
	Cipher  string `json:"cipher"`
	// Retries of the connection, and updates of its keys.
	Retries int64 `json:"retries"`
	Updates int64 `json:"updates"`
	// Its place in a race.
	Rank int64 `json:"rank"`
}

type connection struct {
	quic *quic.Conn
	http *http3.ClientConn
	// To which it has moved.
	path   *quic.Path
	events *events
}

// What happens on a connection.
type events struct{ retries, updates atomic.Int64 }

func (e *events) AddProducer() qlogwriter.Recorder { return e }

func (e *events) SupportsSchemas(string) bool { return false }

func (e *events) Close() error { return nil }

func (e *events) RecordEvent(event qlogwriter.Event) {
	switch event := event.(type) {
	case qlog.PacketReceived:
		if event.Header.PacketType == qlog.PacketTypeRetry {
			e.retries.Add(1)
		}
	case qlog.KeyUpdated:
		if event.Trigger == qlog.KeyUpdateLocal || event.Trigger == qlog.KeyUpdateRemote {
			e.updates.Add(1)
		}
	}
}

// The sessions and tokens of a client that comes back.
type memory struct {
	sessions tls.ClientSessionCache
	tokens   quic.TokenStore
}

var memories = struct {
	sync.Mutex
	all map[string]*memory
}{all: map[string]*memory{}}

func memoryOf(name string) *memory {
	memories.Lock()
	defer memories.Unlock()
	if memories.all[name] == nil {
		memories.all[name] = &memory{tls.NewLRUClientSessionCache(10), quic.NewLRUTokenStore(10, 10)}
	}
	return memories.all[name]
}

var (
	connections = map[string]*connection{}
	authorities = x509.NewCertPool()
	server      = os.Args[1]
)

// The content of requests.
type pattern struct{ left int }

func (p *pattern) Read(room []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	n := min(len(room), p.left)
	for at := range n {
		room[at] = 'z'
	}
	p.left -= n
	return n, nil
}

func open(o order) (*connection, error) {
	if known := connections[o.On]; known != nil {
		return known, nil
	}
	opened, err := dial(o)
	if err == nil {
		connections[o.On] = opened
	}
	return opened, err
}

func dial(o order) (*connection, error) {
	host := o.Host
	if host == "" {
		host = "localhost"
	}
	settings := &tls.Config{RootCAs: authorities, ServerName: host, NextProtos: []string{"h3"}}
	if len(o.Certificate) == 2 {
		own, err := tls.LoadX509KeyPair(o.Certificate[0], o.Certificate[1])
		if err != nil {
			return nil, err
		}
		settings.Certificates = []tls.Certificate{own}
	}
	to := o.To
	if to == "" {
		to = server
	}
	patience := 10 * time.Second
	if o.Do == "load" {
		// Thousands open at once, and a busy machine has lost some of their packets: these are sent again.
		patience = time.Minute
	}
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	happens := &events{}
	config := &quic.Config{
		HandshakeIdleTimeout: patience,
		MaxIdleTimeout:       60 * time.Second, KeepAlivePeriod: 5 * time.Second,
		Tracer: func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return happens },
	}
	if o.Do == "stall" {
		// Answers that are not read would else take all that the connection may get before others have begun.
		config.InitialConnectionReceiveWindow, config.MaxConnectionReceiveWindow = 64<<20, 64<<20
	}
	if o.Memory != "" {
		known := memoryOf(o.Memory)
		settings.ClientSessionCache = known.sessions
		if !o.Unproven {
			config.TokenStore = known.tokens
		}
	}
	dialled, err := dialBy(limit, o, to, settings, config)
	if err != nil {
		return nil, err
	}
	if o.Bare {
		return &connection{quic: dialled, events: happens}, nil
	}
	transport := &http3.Transport{DisableCompression: true}
	opened := &connection{quic: dialled, http: transport.NewClientConn(dialled), events: happens}
	if o.Early {
		return opened, nil
	}
	// It has opened its own streams then.
	select {
	case <-opened.http.ReceivedSettings():
	case <-dialled.Context().Done():
	case <-limit.Done():
	}
	return opened, nil
}

// A connection that moves needs ids of its own, by which all its sockets know it.
func dialBy(
	limit context.Context, o order, to string, settings *tls.Config, config *quic.Config,
) (*quic.Conn, error) {
	if o.Early {
		return quic.DialAddrEarly(limit, to, settings, config)
	}
	if !o.Moves {
		return quic.DialAddr(limit, to, settings, config)
	}
	address, err := net.ResolveUDPAddr("udp", to)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return nil, err
	}
	transport := &quic.Transport{Conn: socket}
	return transport.Dial(limit, address, settings, config)
}

// What ended a stream or a connection: its code, or -1.
func code(err error) int64 {
	var application *quic.ApplicationError
	var stream *quic.StreamError
	var h3 *http3.Error
	switch {
	case errors.As(err, &h3):
		return int64(h3.ErrorCode)
	case errors.As(err, &application):
		return int64(application.ErrorCode)
	case errors.As(err, &stream):
		return int64(stream.ErrorCode)
	}
	return -1
}

func failed(err error) answer { return answer{Error: err.Error(), Code: code(err)} }

func request(ctx context.Context, o order, interim *[]int) (*http.Request, error) {
	var content io.Reader
	if o.Content > 0 || o.Chunked {
		content = &pattern{o.Content}
	}
	host := o.Host
	if host == "" {
		host = "localhost"
	}
	method := o.Method
	if method == "" {
		method = "GET"
	}
	trace := &httptrace.ClientTrace{Got1xxResponse: func(status int, _ textproto.MIMEHeader) error {
		*interim = append(*interim, status)
		return nil
	}}
	ctx = httptrace.WithClientTrace(ctx, trace)
	made, err := http.NewRequestWithContext(ctx, method, "https://"+host+o.Path, content)
	if err != nil {
		return nil, err
	}
	if content != nil {
		made.ContentLength = int64(o.Content)
		if o.Chunked {
			made.ContentLength = -1
		}
	}
	for name, value := range o.Fields {
		made.Header.Set(name, value)
	}
	if o.Trailers != nil {
		made.Trailer = http.Header{}
		for name, value := range o.Trailers {
			made.Trailer.Set(name, value)
		}
	}
	return made, nil
}

func ask(on *connection, o order) answer {
	limit, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	var interim []int
	made, err := request(limit, o, &interim)
	if err != nil {
		return failed(err)
	}
	got, err := on.http.RoundTrip(made)
	if err != nil {
		return failed(err)
	}
	defer got.Body.Close()
	content, err := io.ReadAll(got.Body)
	sum := sha256.Sum256(content)
	said := answer{
		Status: got.StatusCode, Protocol: got.Proto, Fields: got.Header, Trailers: got.Trailer, Interim: interim,
		Length: len(content), Sum: hex.EncodeToString(sum[:]),
	}
	state := on.quic.ConnectionState()
	said.Early, said.Resumed = state.Used0RTT, state.TLS.DidResume
	said.Cipher = tls.CipherSuiteName(state.TLS.CipherSuite)
	said.Retries, said.Updates = on.events.retries.Load(), on.events.updates.Load()
	if len(content) < 4096 {
		said.Text = string(content)
	}
	if err != nil {
		said.Error, said.Code = err.Error(), code(err)
	}
	return said
}

func together(count int, do func(int) answer) []answer {
	all := make([]answer, max(count, 1))
	var wait sync.WaitGroup
	for at := range all {
		wait.Go(func() { all[at] = do(at) })
	}
	wait.Wait()
	return all
}

// What the connection ends with, if it does within the time of the order.
func end(on *connection, o order) answer {
	select {
	case <-on.quic.Context().Done():
		return failed(context.Cause(on.quic.Context()))
	case <-time.After(time.Duration(o.Wait) * time.Millisecond):
		return answer{}
	}
}

// A HEADERS frame with these fields.
func headers(lines [][2]string) []byte {
	if len(lines) == 0 {
		return nil
	}
	var section bytes.Buffer
	encoder := qpack.NewEncoder(&section)
	for _, line := range lines {
		encoder.WriteField(qpack.HeaderField{Name: line[0], Value: line[1]})
	}
	return append(quicvarint.Append([]byte{1}, uint64(section.Len())), section.Bytes()...)
}

// Sends bytes on a stream of their own, and says what comes back until its end.
func raw(on *connection, o order) answer {
	sent, err := hex.DecodeString(o.Bytes)
	if err != nil {
		return failed(err)
	}
	sent = append(headers(o.Lines), sent...)
	stream, err := on.quic.OpenStreamSync(context.Background())
	if err != nil {
		return failed(err)
	}
	stream.SetDeadline(time.Now().Add(time.Duration(o.Wait) * time.Millisecond))
	if _, err = stream.Write(sent); err == nil && o.Ends {
		err = stream.Close()
	}
	if err != nil {
		return failed(err)
	}
	got, err := io.ReadAll(stream)
	said := answer{Length: len(got), Text: hex.EncodeToString(got)}
	if err != nil {
		said.Error, said.Code = err.Error(), code(err)
	}
	return said
}

// Requests of which all are sent before any answer is read, and the order in which their answers are whole.
func race(on *connection, o order) []answer {
	control, err := hex.DecodeString(o.Control)
	if err != nil {
		return []answer{failed(err)}
	}
	if stream, err := on.quic.OpenUniStream(); err == nil {
		stream.Write(control)
	}
	var streams []*quic.Stream
	for range o.Races {
		stream, err := on.quic.OpenStream()
		if err != nil {
			return []answer{failed(err)}
		}
		streams = append(streams, stream)
	}
	for at, lines := range o.Races {
		streams[at].Write(headers(lines))
		streams[at].Close()
	}
	var rank atomic.Int64
	return together(len(streams), func(at int) answer {
		streams[at].SetDeadline(time.Now().Add(time.Minute))
		got, err := io.ReadAll(streams[at])
		said := answer{Length: len(got), Rank: rank.Add(1)}
		if err != nil {
			said.Error, said.Code = err.Error(), code(err)
		}
		return said
	})
}

// Opens streams in one direction one after another, and says with what the connection ends.
func uni(on *connection, o order) answer {
	sent, err := hex.DecodeString(o.Bytes)
	if err != nil {
		return failed(err)
	}
	for range o.Count {
		limit, cancel := context.WithTimeout(on.quic.Context(), 2*time.Second)
		stream, err := on.quic.OpenUniStreamSync(limit)
		cancel()
		if err != nil {
			break
		}
		stream.Write(sent)
		if o.Ends {
			stream.Close()
		}
	}
	return end(on, o)
}

// Asks and gives up at once, again and again.
func resets(on *connection, o order) answer {
	for range o.Count {
		limit, cancel := context.WithTimeout(on.quic.Context(), 2*time.Second)
		stream, err := on.http.OpenRequestStream(limit)
		cancel()
		if err != nil {
			break
		}
		made, err := request(context.Background(), o, new([]int))
		if err == nil {
			err = stream.SendRequestHeader(made)
		}
		if err != nil {
			break
		}
		stream.Close()
		time.Sleep(time.Duration(o.Delay) * time.Millisecond)
		stream.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestCanceled))
	}
	return end(on, o)
}

// Asks, and never reads the content.
func stall(on *connection, o order) answer {
	made, err := request(context.Background(), o, new([]int))
	if err != nil {
		return failed(err)
	}
	stream, err := on.http.OpenRequestStream(context.Background())
	if err == nil {
		err = stream.SendRequestHeader(made)
	}
	if err != nil {
		return failed(err)
	}
	stream.Close()
	got, err := stream.ReadResponse()
	if err != nil {
		return failed(err)
	}
	return answer{Status: got.StatusCode}
}

// WebSocket by extended CONNECT: says what comes back for some bytes.
func tunnel(on *connection, o order) answer {
	<-on.http.ReceivedSettings()
	if !on.http.Settings().EnableExtendedConnect {
		return answer{Error: "the server knows no extended CONNECT"}
	}
	made, err := request(context.Background(), o, new([]int))
	if err != nil {
		return failed(err)
	}
	made.Method, made.Proto = http.MethodConnect, "websocket"
	if o.Protocol != "" {
		made.Proto = o.Protocol
	}
	stream, err := on.http.OpenRequestStream(context.Background())
	if err == nil {
		err = stream.SendRequestHeader(made)
	}
	if err != nil {
		return failed(err)
	}
	stream.SetDeadline(time.Now().Add(10 * time.Second))
	got, err := stream.ReadResponse()
	if err != nil {
		return failed(err)
	}
	said := answer{Status: got.StatusCode, Fields: got.Header}
	sent, _ := hex.DecodeString(o.Bytes)
	if got.StatusCode == 200 {
		stream.Write(sent)
		back := make([]byte, o.Count)
		if _, err := io.ReadFull(stream, back); err != nil {
			return failed(err)
		}
		said.Text = hex.EncodeToString(back)
		stream.Close()
		rest, err := io.ReadAll(stream)
		said.Length = len(rest)
		if err != nil {
			said.Error, said.Code = err.Error(), code(err)
		}
	}
	return said
}

// Ends the connection.
func closed(on *connection) answer {
	on.quic.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
	return answer{}
}

// Goes on from another socket, as a client does that has changed its network.
func migrate(on *connection) answer {
	socket, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return failed(err)
	}
	path, err := on.quic.AddPath(&quic.Transport{Conn: socket})
	if err != nil {
		return failed(err)
	}
	limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := path.Probe(limit); err != nil {
		return failed(err)
	}
	if err := path.Switch(); err != nil {
		return failed(err)
	}
	if on.path != nil {
		// Each path has an id of the server's, of which there are few.
		on.path.Close()
	}
	on.path = path
	return answer{Status: 200}
}

// Whether the server may have begun with the request: if it says that it has not, the request is asked again elsewhere.
func isLost(on *connection, said answer) bool {
	ended := context.Cause(on.quic.Context())
	switch {
	case said.Error == "" && said.Status == 200:
		return false
	case strings.Contains(said.Error, "graceful shutdown"), said.Code == int64(http3.ErrCodeRequestRejected):
		return false
	}
	// It had told the client before that no further requests would be answered.
	return ended == nil || code(ended) != int64(http3.ErrCodeNoError)
}

// Asks again and again on many connections, until a file is there or the time of the order is over, and opens another
// connection where a server has ended one.
func load(o order) answer {
	var asked, moved, lost atomic.Int64
	var first atomic.Value
	places := make(chan struct{}, 20)
	until := time.Now().Add(time.Duration(o.Wait) * time.Millisecond)
	var stopped atomic.Bool
	go func() {
		for !stopped.Load() {
			_, err := os.Stat(o.Until)
			stopped.Store(err == nil || time.Now().After(until))
			time.Sleep(50 * time.Millisecond)
		}
	}()
	fail := func(what string, said answer) {
		lost.Add(1)
		first.CompareAndSwap(nil, fmt.Sprintf("%s: %d %s (%d)", what, said.Status, said.Error, said.Code))
	}
	enter := func() *connection {
		places <- struct{}{}
		defer func() { <-places }()
		opened, err := dial(o)
		if err != nil {
			fail("open", failed(err))
			return nil
		}
		return opened
	}
	together(o.Count, func(int) answer {
		on := enter()
		for on != nil && !stopped.Load() {
			said := ask(on, o)
			switch {
			case said.Error == "" && said.Status == 200:
				asked.Add(1)
			case isLost(on, said):
				fail("ask", said)
				on = enter()
			default:
				moved.Add(1)
				on.quic.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
				on = enter()
			}
			time.Sleep(time.Duration(o.Delay) * time.Millisecond)
		}
		if on != nil {
			on.quic.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
		}
		return answer{}
	})
	why, _ := first.Load().(string)
	return answer{Asked: asked.Load(), Moved: moved.Load(), Lost: lost.Load(), Error: why}
}

// Asks for parts of which the answers are known, on many connections, four at a time on each.
func mixed(o order) answer {
	var asked, lost, left atomic.Int64
	var first atomic.Value
	left.Store(int64(o.Requests))
	together(o.Count, func(at int) answer {
		on, err := dial(o)
		if err != nil {
			lost.Add(1)
			first.CompareAndSwap(nil, "open: "+err.Error())
			return answer{}
		}
		together(4, func(int) answer {
			for number := left.Add(-1); number >= 0; number = left.Add(-1) {
				one := o.Parts[rand.IntN(len(o.Parts))]
				each := order{Method: one.Method, Path: one.Path, Content: one.Content}
				if one.Range != "" {
					each.Fields = map[string]string{"Range": one.Range}
				}
				said := ask(on, each)
				if said.Error != "" || said.Status != one.Status || one.Sum != "" && said.Sum != one.Sum {
					lost.Add(1)
					first.CompareAndSwap(nil, fmt.Sprintf("%v: %d %s %s", one, said.Status, said.Sum, said.Error))
					continue
				}
				asked.Add(1)
			}
			return answer{}
		})
		on.quic.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
		return answer{}
	})
	why, _ := first.Load().(string)
	return answer{Asked: asked.Load(), Lost: lost.Load(), Error: why}
}

// A socket as somebody has it who sends in the name of another client: nothing comes back. Its first packet goes, no
// farewell.
type deaf struct {
	net.PacketConn
	sent atomic.Bool
}

func (d *deaf) ReadFrom(room []byte) (int, net.Addr, error) {
	for {
		if _, _, err := d.PacketConn.ReadFrom(room); err != nil {
			return 0, nil, err
		}
	}
}

func (d *deaf) WriteTo(packet []byte, to net.Addr) (int, error) {
	if d.sent.Swap(true) {
		return len(packet), nil
	}
	return d.PacketConn.WriteTo(packet, to)
}

// Sends first packets of so many connections, and hears no answer.
func knock(o order) answer {
	address, err := net.ResolveUDPAddr("udp", server)
	if err != nil {
		return failed(err)
	}
	settings := &tls.Config{RootCAs: authorities, ServerName: "localhost", NextProtos: []string{"h3"}}
	for range o.Count {
		socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			return failed(err)
		}
		transport := &quic.Transport{Conn: &deaf{PacketConn: socket}}
		limit, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		transport.Dial(limit, address, settings, &quic.Config{})
		cancel()
		transport.Close()
		socket.Close()
	}
	return answer{}
}

func obey(o order) []answer {
	if o.Do == "knock" {
		return []answer{knock(o)}
	}
	if o.Do == "load" {
		return []answer{load(o)}
	}
	if o.Do == "mixed" {
		return []answer{mixed(o)}
	}
	if o.Do == "open" {
		var all []answer
		for at := range max(o.Count, 1) {
			each := o
			each.On = fmt.Sprintf("%s-%d", o.On, at)
			if _, err := open(each); err != nil {
				all = append(all, failed(err))
				continue
			}
			all = append(all, answer{Status: 200})
		}
		return all
	}
	on, err := open(o)
	if err != nil {
		return []answer{failed(err)}
	}
	if o.Do == "race" {
		return race(on, o)
	}
	does := map[string]func(*connection, order) answer{
		"ask": ask, "raw": raw, "uni": uni, "resets": resets, "stall": stall, "tunnel": tunnel, "end": end,
		"move": func(on *connection, _ order) answer { return migrate(on) },
		"close": func(on *connection, o order) answer {
			delete(connections, o.On)
			return closed(on)
		},
	}
	do := does[o.Do]
	count := o.Count
	if o.Do != "ask" && o.Do != "stall" {
		count = 1
	}
	return together(count, func(int) answer { return do(on, o) })
}

func main() {
	pem, err := os.ReadFile(os.Args[2])
	if err != nil || !authorities.AppendCertsFromPEM(pem) {
		fmt.Fprintln(os.Stderr, "no authorities", err)
		os.Exit(1)
	}
	input := bufio.NewReader(os.Stdin)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		var o order
		if err := json.NewDecoder(bytes.NewReader(line)).Decode(&o); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		said, err := json.Marshal(obey(o))
		if err != nil {
			os.Exit(1)
		}
		fmt.Println(string(said))
	}
}
