"""What is compared: per case a configuration, what clients send, how the origin answers.

A client and each connection of an origin is a list of steps: ('s', bytes) sends, ('r', pattern) reads until the pattern (the end of a
head without one), ('e',) reads to the end, ('w', seconds) waits, ('h',) half-closes, ('R',) resets, ('c',) closes. The last list of an
origin serves all further connections. `{fe}`, `{srv}` and `{dead}` in a configuration are the frontend's, the origin's and a refusing
address; literal braces are doubled.
"""

FE='''
frontend fe
    bind {fe}
    option httplog
    default_backend be
backend be
    server s1 {srv}
'''
G=b'GET / HTTP/1.1\r\nHost: h\r\n\r\n'
OK=b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'
def c(name,clients,origin=[[('r',),('s',OK),('e',)]],cfg=FE,**k): return dict(name=name,clients=clients,origin=origin,cfg=cfg,**k)
def fe(*opts,be=(),srv='server s1 {srv}'):
    return 'frontend fe\n    bind {fe}\n    option httplog\n'+''.join('    %s\n'%o for o in opts)+'    default_backend be\nbackend be\n'+''.join('    %s\n'%o for o in be)+'    %s\n'%srv
E_=('e',)
CASES=[
 c('plain',[[('s',G),('r',b'hi')]]),
 c('close-hdr',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'),E_]]),
 c('http10',[[('s',b'GET / HTTP/1.0\r\nHost: h\r\n\r\n'),E_]]),
 c('http10-nohost',[[('s',b'GET / HTTP/1.0\r\n\r\n'),E_]]),
 c('http10-ka',[[('s',b'GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n'),('r',b'hi'),('w',.1),('h',),E_]]),
 c('http10-chunked-resp',[[('s',b'GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n'),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n'),('e',)]]),
 c('origin10-close',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.0 200 OK\r\n\r\nhello'),('c',)]]),
 c('origin10-close-11',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nX-A: b\r\n\r\nhello'),('c',)]]),
 c('origin10-ka',[[('s',G),('r',b'hi')]],[[('r',),('s',b'HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\nhi'),('e',)]]),
 c('head',[[('s',b'HEAD / HTTP/1.1\r\nHost: h\r\n\r\n'),('r',),('h',),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n'),('e',)]]),
 c('204',[[('s',G),('r',),('h',),E_]],[[('r',),('s',b'HTTP/1.1 204 No Content\r\n\r\n'),('e',)]]),
 c('304',[[('s',G),('r',),('h',),E_]],[[('r',),('s',b'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n'),('e',)]]),
 c('chunked',[[('s',G),('r',b'0\r\n\r\n')]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nhi\r\n3;ext=1\r\nabc\r\n0\r\nX-T: v\r\n\r\n'),('e',)]]),
 c('post',[[('s',b'POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc'),('r',b'hi')]],[[('r',b'abc'),('s',OK),('e',)]]),
 c('post-chunked',[[('s',b'POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'),('r',b'hi')]],[[('r',b'0\r\n\r\n'),('s',OK),('e',)]]),
 c('post-split',[[('s',b'POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc'),('w',.1),('s',b'def'),('r',b'hi')]],[[('r',b'abcdef'),('s',OK),('e',)]]),
 c('pipelined',[[('s',G+b'GET /2 HTTP/1.1\r\nHost: h\r\n\r\n'),('r',b'hi'),('w',.1),('h',),E_]],[[('r',),('s',OK),('r',),('s',OK),('e',)]]),
 c('keepalive2',[[('s',G),('r',b'hi'),('w',.1),('s',G),('r',b'hi'),('w',.1),('h',),E_]],[[('r',),('s',OK),('r',),('s',OK),('e',)]]),
 c('ka-idle-timeout',[[('s',G),('r',b'hi'),E_]]),
 c('expect',[[('s',b'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n'),('r',b'100'),('s',b'abc'),('r',b'hi')]],[[('r',),('s',b'HTTP/1.1 100 Continue\r\n\r\n'),('r',b'abc'),('s',OK),('e',)]]),
 c('expect-final',[[('s',b'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n'),E_]],[[('r',),('s',b'HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n'),('e',)]]),
 c('hdr-case-order',[[('s',b'GET /?q=1 HTTP/1.1\r\nX-Foo:  bar  \r\nHost: h\r\nUser-Agent: x\r\nX-foo: 2\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nProxy-Connection: x\r\nTE: trailers\r\nUpgrade: foo\r\n\r\n'),('r',b'hi')]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nServer: X\r\nX-A:   b  \r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nhi'),('e',)]]),
 c('conn-nominated',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nConnection: x-a, close\r\nX-A: 1\r\n\r\n'),E_]]),
 c('xff',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n'),('r',b'hi')]],cfg=fe('option forwardfor','option originalto','http-request set-header X-New v')),
 c('forwarded',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n'),('r',b'hi')]],cfg=fe(be=['option forwarded','option forwardfor'])),
 c('forwarded2',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n'),('r',b'hi')]],cfg=fe(be=['option forwarded proto host by by_port for for_port'])),
 c('httpclose',[[('s',G),E_]],cfg=fe('option httpclose')),
 c('httpclose-be',[[('s',G),E_]],cfg=fe(be=['option httpclose'])),
 c('server-close',[[('s',G),('r',b'hi'),('h',),E_]],cfg=fe('option http-server-close')),
 c('server-close-pretend',[[('s',G),('r',b'hi'),('h',),E_]],cfg=fe(be=['option http-server-close','option http-pretend-keepalive'])),
 c('httpclose-pretend',[[('s',G),E_]],cfg=fe('option httpclose',be=['option http-pretend-keepalive'])),
 c('no-server',[[('s',G),E_]],cfg=fe(srv='')),
 c('no-backend',[[('s',G),E_]],cfg='frontend fe\n    bind {fe}\n    option httplog\n'),
 c('refused',[[('s',G),E_]],cfg=fe(srv='server s1 {dead}',be=['retries 1','timeout connect 100ms'])),
 c('refused-r0',[[('s',G),E_]],cfg=fe(srv='server s1 {dead}',be=['retries 0'])),
 c('redispatch',[[('s',G),('r',b'hi')]],cfg=fe(srv='server s0 {dead}\n    server s1 {srv}',be=['retries 2','option redispatch','timeout connect 100ms'])),
 c('redispatch1',[[('s',G),('r',b'hi')]],cfg=fe(srv='server s0 {dead}\n    server s1 {srv}',be=['retries 2','option redispatch 1','timeout connect 100ms'])),
 c('server-timeout',[[('s',G),E_]],[[('r',),('e',)]]),
 c('server-close-early',[[('s',G),E_]],[[('r',),('c',)]]),
 c('server-rst-early',[[('s',G),E_]],[[('r',),('R',)]]),
 c('server-partial-head',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nX'),('c',)]]),
 c('server-bad-head',[[('s',G),E_]],[[('r',),('s',b'HTTQ/1.1 200 OK\r\n\r\n'),('e',)]]),
 c('server-cut-body',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nabc'),('c',)]]),
 c('server-cut-body-chunked',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'),('c',)]]),
 c('server-bad-chunk',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n'),('e',)]]),
 c('server-body-timeout',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nabc'),('e',)]]),
 c('client-abort-wait',[[('s',G),('w',.1),('c',)]],[[('r',),('w',.3),('s',OK),('e',)]],wait=.8),
 c('client-rst-wait',[[('s',G),('w',.1),('R',)]],[[('r',),('w',.3),('s',OK),('e',)]],wait=.8),
 c('client-halfclose-wait',[[('s',G),('h',),E_]],[[('r',),('w',.2),('s',OK),('e',)]],wait=.8),
 c('client-abort-wait-aoc',[[('s',G),('w',.1),('c',)]],[[('r',),('w',.3),('s',OK),('e',)]],wait=.8,cfg=fe(be=['option abortonclose'])),
 c('client-abort-body',[[('s',G),('r',b'abc'),('R',)]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nabc'),('w',.1),('s',b'abc'),('w',.1),('s',b'abc'),('e',)]],wait=.8),
 c('client-cut-upload',[[('s',b'POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc'),('w',.1),('h',),E_]],[[('r',b'abc'),('e',)]]),
 c('client-timeout-upload',[[('s',b'POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc'),E_]],[[('r',b'abc'),('e',)]]),
 c('client-bad-chunk',[[('s',b'POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'),E_]],[[('r',),('e',)]]),
 c('client-bad-chunk2',[[('s',b'POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'),('w',.1),('s',b'zz\r\n'),E_]],[[('r',),('e',)]]),
 c('bad-request',[[('s',b'GET / HTTQ/1.1\r\nHost: h\r\n\r\n'),E_]]),
 c('bad-request2',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nfoo bar\r\n\r\n'),E_]]),
 c('bad-host',[[('s',b'GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n'),E_]]),
 c('http2-preface',[[('s',b'GET / HTTP/2.0\r\nHost: h\r\n\r\n'),E_]]),
 c('partial-timeout',[[('s',b'GET / HTTP/1.1\r\nHo'),E_]]),
 c('partial-reqtimeout',[[('s',b'GET / HTTP/1.1\r\nHo'),E_]],cfg=fe('timeout http-request 200ms')),
 c('partial-eof',[[('s',b'GET / HTTP/1.1\r\nHo'),('w',.1),('h',),E_]]),
 c('partial-rst',[[('s',b'GET / HTTP/1.1\r\nHo'),('w',.1),('R',)]]),
 c('silent-eof',[[('h',),E_]]),
 c('silent-rst',[[('w',.05),('R',)]]),
 c('silent-timeout',[[E_]]),
 c('silent-timeout-null',[[E_]],cfg=fe('option dontlognull')),
 c('silent-eof-null',[[('h',),E_]],cfg=fe('option dontlognull')),
 c('silent-probes',[[('h',),E_]],cfg=fe('option http-ignore-probes')),
 c('second-partial-timeout',[[('s',G),('r',b'hi'),('s',b'GET /2 HTTP/1.1\r\n'),E_]]),
 c('second-partial-eof',[[('s',G),('r',b'hi'),('s',b'GET /2 HTTP/1.1\r\n'),('w',.1),('h',),E_]]),
 c('second-bad',[[('s',G),('r',b'hi'),('s',b'GET /2 HTTQ/1.1\r\n\r\n'),E_]]),
 c('idle-rst',[[('s',G),('r',b'hi'),('w',.1),('R',)]]),
 c('ka-timeout',[[('s',G),('r',b'hi'),E_]],cfg=fe('timeout http-keep-alive 200ms')),
 c('deny',[[('s',G),('r',b'</html>'),('s',G),E_]],cfg=fe('http-request deny')),
 c('deny-resp',[[('s',G),('r',b'</html>'),('h',),E_]],cfg=fe('http-response deny')),
 c('return',[[('s',G),('r',b'body'),('h',),E_]],cfg=fe('http-request return status 200 content-type text/plain string body hdr X-A b')),
 c('return-post',[[('s',b'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc'),('r',b'body'),('h',),E_]],cfg=fe('http-request return status 200 content-type text/plain string body')),
 c('redirect',[[('s',b'GET /a/b?c HTTP/1.1\r\nHost: h\r\n\r\n'),('r',),('h',),E_]],cfg=fe('http-request redirect prefix http://x code 301')),
 c('redirect-scheme',[[('s',b'GET /a/b?c HTTP/1.1\r\nHost: h\r\n\r\n'),('r',),('h',),E_]],cfg=fe('redirect scheme https')),
 c('redirect-close',[[('s',b'GET /a/b?c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'),('r',),E_]],cfg=fe('http-request redirect location /x')),
 c('redirect-post',[[('s',b'POST /a/b?c HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab'),('r',),('w',.1),('s',b'cd'),('h',),E_]],cfg=fe('http-request redirect location /x')),
 c('tarpit',[[('s',G),E_]],cfg=fe('timeout tarpit 200ms','http-request tarpit')),
 c('reject',[[('s',G),E_]],cfg=fe('http-request reject')),
 c('tcp-content-reject',[[('s',G),E_]],cfg=fe('tcp-request content reject')),
 c('tcp-conn-reject',[[('s',G),E_]],cfg=fe('tcp-request connection reject')),
 c('tcp-sess-reject',[[('s',G),E_]],cfg=fe('tcp-request session reject')),
 c('upgrade',[[('s',b'GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'),('r',),('s',b'ping'),('r',b'pong'),('h',),E_]],[[('r',),('s',b'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n'),('r',b'ping'),('s',b'pong'),('e',)]]),
 c('upgrade-refused',[[('s',b'GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n'),('r',b'hi'),('h',),E_]]),
 c('connect',[[('s',b'CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n'),('r',),('s',b'ping'),('r',b'pong'),('h',),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\n\r\n'),('r',b'ping'),('s',b'pong'),('e',)]]),
 c('connect-refused',[[('s',b'CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n'),('r',b'hi'),('h',),E_]],[[('r',),('s',b'HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nhi'),('e',)]]),
 c('tunnel-timeout',[[('s',b'CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n'),('r',),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\n\r\n'),('e',)]]),
 c('103',[[('s',G),('r',b'hi')]],[[('r',),('s',b'HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n'),('w',.05),('s',OK),('e',)]]),
 c('early-response',[[('s',b'POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc'),('r',b'hi'),('w',.1),('s',b'def'),('w',.1),('s',G),('r',b'hi')]],[[('r',b'abc'),('s',OK),('e',)],[('r',),('s',OK),('e',)]]),
 c('early-response-timeout',[[('s',b'POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc'),('r',b'hi'),E_]],[[('r',b'abc'),('s',OK),('e',)]]),
 c('early-response-close',[[('s',b'POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc'),('r',b'hi'),E_]],[[('r',b'abc'),('s',OK),('c',)]]),
 c('resp-to-idle',[[('s',G),('r',b'hi'),('w',.1),('s',G),('r',b'hi')]],[[('r',),('s',OK),('c',)],[('r',),('s',OK),('e',)]]),
 c('retry-on-dead-reuse',[[('s',G),('r',b'hi'),('w',.1),('s',G),('r',b'hi')]],[[('r',),('s',OK),('r',),('c',)],[('r',),('s',OK),('e',)]]),
 c('retry-dead-reuse-post',[[('s',G),('r',b'hi'),('w',.1),('s',b'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab'),E_]],[[('r',),('s',OK),('r',),('c',)],[('r',),('s',OK),('e',)]]),
 c('logasap',[[('s',G),('r',b'hi')]],cfg=fe('option logasap')),
 c('captures',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: a b\r\n\r\n'),('r',b'hi')]],cfg=fe('capture request header Host len 20','capture request header X-None len 4','capture request header User-Agent len 2','capture response header Server len 4','capture response header Content-Length len 8')),
 c('cookie-capture',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nCookie: a=1; SID=xyzzy; b=2\r\n\r\n'),('r',b'hi')]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nSet-Cookie: SID=abc; path=/\r\nContent-Length: 2\r\n\r\nhi'),('e',)]],cfg=fe('capture cookie SID len 10')),
 c('buffer-timeout',[[('s',b'POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc'),E_]],cfg=fe('option http-buffer-request')),
 c('buffer-eof',[[('s',b'POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc'),('w',.1),('h',),E_]],cfg=fe('option http-buffer-request')),
 c('buffer-reqtimeout',[[('s',b'POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc'),E_]],cfg=fe('option http-buffer-request','timeout http-request 200ms')),
 c('long-url',[[('s',b'GET /'+b'a'*17000+b' HTTP/1.1\r\nHost: h\r\n\r\n'),E_]]),
 c('many-headers',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\n'+b''.join(b'X-%d: 1\r\n'%i for i in range(120))+b'\r\n'),E_]]),
 c('monitor',[[('s',b'GET /mon HTTP/1.1\r\nHost: h\r\n\r\n'),('r',b'</html>'),('h',),E_]],cfg=fe('monitor-uri /mon')),
 c('monitor-fail',[[('s',b'GET /mon HTTP/1.1\r\nHost: h\r\n\r\n'),('r',b'</html>'),('h',),E_]],cfg=fe('monitor-uri /mon','monitor fail if TRUE')),
 c('errorfile-none',[[('s',G),E_]],cfg=fe('http-request deny deny_status 403','errorfile 403 /dev/null')),
 c('trailing-lf',[[('s',b'\r\n'+G),('r',b'hi')]]),
 c('abs-uri',[[('s',b'GET http://h/x?y HTTP/1.1\r\nHost: h\r\n\r\n'),('r',b'hi')]]),
 c('abs-uri-port',[[('s',b'GET http://h:80/x?y HTTP/1.1\r\nHost: h\r\n\r\n'),('r',b'hi')]]),
 c('fragment',[[('s',b'GET /x#y HTTP/1.1\r\nHost: h\r\n\r\n'),E_]]),
 c('no-host',[[('s',b'GET / HTTP/1.1\r\n\r\n'),('r',b'hi')]]),
 c('two-hosts',[[('s',b'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'),E_]]),
 c('two-hosts-same',[[('s',b'GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n'),('r',b'hi')]]),
 c('two-cl-same',[[('s',b'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab'),('r',b'hi')]],[[('r',b'ab'),('s',OK),('e',)]]),
 c('two-cl-diff',[[('s',b'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nab'),E_]]),
 c('cl-te',[[('s',b'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n'),E_]],[[('r',b'0\r\n\r\n'),('s',OK),('e',)]]),
 c('te-10',[[('s',b'POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n'),E_]],[[('r',b'0\r\n\r\n'),('s',OK),('e',)]]),
 c('get-body',[[('s',b'GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab'),('r',b'hi')]],[[('r',b'ab'),('s',OK),('e',)]]),
 c('get-http10-body',[[('s',b'GET / HTTP/1.0\r\nHost: a\r\nContent-Length: 2\r\n\r\nab'),E_]],[[('r',b'ab'),('s',OK),('e',)]]),
 c('post-nolen',[[('s',b'POST / HTTP/1.1\r\nHost: a\r\n\r\n'),('r',b'hi')]]),
 c('empty-hdr',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nX-E:\r\n\r\n'),('r',b'hi')]],cfg=fe('http-request set-header x-ff "%[req.hdr(nope)]"','http-request add-header x-fg "%[req.hdr(nope)]b"','http-response set-header x-ff "%[res.hdr(nope)]"')),
 c('ret-empty-hdr',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nX-E:\r\n\r\n'),('r')]],cfg=fe('http-request return status 200 hdr x-ff "%[req.hdr(nope)]" hdr x-e "%[req.hdr(x-e)]"')),
 c('unique-id',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nX-E: 1\r\n\r\n'),('r',b'hi')]],cfg=fe('unique-id-format id-%[req.hdr(x-e)]','unique-id-header X-Id','option forwardfor')),
 c('clf',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nX-E: 1\r\n\r\n'),('r',b'hi')]],cfg=fe('option httplog clf').replace('    option httplog\n','',1)),
 c('resp-hdr-wait',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nContent-Le'),('e',)]]),
 c('resp-too-long',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nX: '+b'a'*20000+b'\r\n\r\n'),('e',)]]),
 c('resp-cl-te',[[('s',G),('r',b'0\r\n\r\n')]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n'),('e',)]]),
 c('resp-two-cl',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 2\r\n\r\nhi'),('e',)]]),
 c('resp-extra',[[('s',G),('r',b'hi'),('w',.1),('s',G),('r',b'hi')]],[[('r',),('s',OK+b'junk'),('e',)],[('r',),('s',OK),('e',)]]),
]
T='''
frontend fe
    mode tcp
    bind {fe}
    option tcplog
    default_backend be
backend be
    mode tcp
    server s1 {srv}
'''
def t(*opts,be=(),srv='server s1 {srv}'):
    return 'frontend fe\n    mode tcp\n    bind {fe}\n    option tcplog\n'+''.join('    %s\n'%o for o in opts)+'    default_backend be\nbackend be\n    mode tcp\n'+''.join('    %s\n'%o for o in be)+'    %s\n'%srv
P=[[('r',b'ping'),('s',b'pong'),('e',)]]
CASES+=[
 c('tcp-plain',[[('s',b'ping'),('r',b'pong'),('h',),E_]],P,T),
 c('tcp-rst',[[('s',b'ping'),('r',b'pong'),('R',)]],P,T),
 c('tcp-idle',[[('s',b'ping'),('r',b'pong'),E_]],P,T),
 c('tcp-srvidle',[[('s',b'ping'),('r',b'pong'),E_]],P,t(be=['timeout server 200ms'])),
 c('tcp-srvclose',[[('s',b'ping'),('r',b'pong'),E_]],[[('r',b'ping'),('s',b'pong'),('c',)]],T),
 c('tcp-srvrst',[[('s',b'ping'),('r',b'pong'),E_]],[[('r',b'ping'),('s',b'pong'),('w',.1),('R',)]],T),
 c('tcp-refused',[[('s',b'ping'),E_]],P,t(be=['retries 1','timeout connect 100ms'],srv='server s1 {dead}')),
 c('tcp-refused0',[[('s',b'ping'),E_]],P,t(be=['retries 0'],srv='server s1 {dead}')),
 c('tcp-nosrv',[[('s',b'ping'),E_]],P,t(srv='')),
 c('tcp-nobe',[[('s',b'ping'),E_]],P,'frontend fe\n  mode tcp\n  bind {fe}\n  option tcplog\n'),
 c('tcp-silent',[[('h',),E_]],[[('e',)]],T),
 c('tcp-silent-null',[[('h',),E_]],[[('e',)]],t('option dontlognull')),
 c('tcp-silent-to',[[E_]],[[('e',)]],T),
 c('tcp-greet',[[('r',b'hello'),('h',),E_]],[[('s',b'hello'),('e',)]],T),
 c('tcp-content-reject',[[('s',b'x'),E_]],P,t('tcp-request content reject')),
 c('tcp-conn-reject',[[('s',b'x'),E_]],P,t('tcp-request connection reject')),
 c('tcp-sess-reject',[[('s',b'x'),E_]],P,t('tcp-request session reject')),
 c('tcp-inspect',[[('s',b'x'),E_]],P,t('tcp-request inspect-delay 200ms','tcp-request content reject if !{{ req.len gt 3 }}')),
 c('tcp-logasap',[[('s',b'ping'),('r',b'pong'),('h',),E_]],P,t('option logasap')),
 c('tcp-halfclose-long',[[('s',b'ping'),('h',),E_]],[[('r',b'ping'),('w',.2),('s',b'pong'),('c',)]],T),
 c('tcp-proxy1',[[('s',b'ping'),('r',b'pong'),('h',),E_]],P,t(srv='server s1 {srv} send-proxy')),
 c('tcp-accept-proxy',[[('s',b'PROXY TCP4 1.2.3.4 5.6.7.8 11 22\r\nping'),('r',b'pong'),('h',),E_]],P,t(srv='server s1 {srv} send-proxy').replace('bind {fe}','bind {fe} accept-proxy')),
 c('tcp-accept-proxy-bad',[[('s',b'PRAXY TCP4 1.2.3.4 5.6.7.8 11 22\r\nping'),E_]],P,t().replace('bind {fe}','bind {fe} accept-proxy')),
 c('tcp-accept-proxy-eof',[[('s',b'PROXY TCP4 '),('w',.05),('h',),E_]],P,t().replace('bind {fe}','bind {fe} accept-proxy')),
 c('tcp-accept-proxy-to',[[('s',b'PROXY TCP4 '),E_]],P,t().replace('bind {fe}','bind {fe} accept-proxy')),
 c('http-accept-proxy-bad',[[('s',b'PRAXY TCP4 1.2.3.4 5.6.7.8 11 22\r\nping'),E_]],P,fe().replace('bind {fe}','bind {fe} accept-proxy')),
 c('http-accept-proxy-silent',[[('h',),E_]],P,fe().replace('bind {fe}','bind {fe} accept-proxy')),
]
def c2(*a,**k): CASES.append(c(*a,**k))
c2('fin-in-download',[[('s',G),('r',b'abc'),('h',),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc'),('w',.1),('s',b'abc'),('w',.1),('s',b'abc'),('e',)]],wait=.8)
c2('fin-queue',[[('s',G),('w',.1),('h',),E_]],cfg=fe(srv='server s1 {dead}',be=['retries 3']),wait=.8)
c2('rst-queue',[[('s',G),('w',.1),('R',)]],cfg=fe(srv='server s1 {dead}',be=['retries 3']),wait=.8)
c2('pipelined-fin',[[('s',G+b'GET /2 HTTP/1.1\r\nHost: h\r\n\r\n'),('h',),E_]],[[('r',),('s',OK),('r',),('s',OK),('e',)]])
c2('errorfile',[[('s',G),E_]],cfg=fe(srv='',be=['errorfile 503 {dir}/503.http']))
c2('errorloc',[[('s',G),('r',),('h',),E_]],cfg=fe(srv='',be=['errorloc 503 http://x/']))
c2('return-204',[[('s',G),('r',),('h',),E_]],cfg=fe('http-request return status 204'))
c2('return-hdr-close',[[('s',b'GET / HTTP/1.0\r\n\r\n'),E_]],cfg=fe('http-request return status 200 content-type a/b string x'))
c2('redirect-cookie',[[('s',G),('r',),('h',),E_]],cfg=fe('http-request redirect location /x set-cookie A=1','http-request redirect location /y clear-cookie A'))
c2('redirect-drop',[[('s',b'GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n'),('r',),('h',),E_]],cfg=fe('http-request redirect prefix / drop-query append-slash code 308'))
c2('after-resp-400',[[('s',b'GET / HTTQ/1.1\r\n\r\n'),E_]],cfg=fe('http-after-response set-header x-a b'))
c2('after-resp-503',[[('s',G),('r',b'</html>'),('h',),E_]],cfg=fe('http-after-response set-header x-a b',srv=''))
c2('after-resp-408',[[('s',b'GET /'),E_]],cfg=fe('http-after-response set-header x-a b'))
c2('set-status',[[('s',G),('r',b'hi')]],cfg=fe('http-response set-status 418 reason "tea pot"'))
c2('set-uri',[[('s',G),('r',b'hi')]],cfg=fe('http-request set-path /x/y','http-request set-query a=b','http-request set-method PUT'))
c2('log-sep',[[('s',G),E_]],cfg=fe('option log-separate-errors',srv=''),hdr=True)
c2('dontlog-normal',[[('s',G),('r',b'hi')],[('s',b'x\r\n\r\n'),E_]],cfg=fe('option dontlog-normal'))
c2('errlogfmt',[[('s',G),('r',b'</html>')],[('s',b'x\r\n\r\n'),E_]],cfg=fe('error-log-format "E %ci %ts"',srv=''))
c2('tcp-to-http',[[('s',G),('r',b'hi'),('h',),E_]],cfg='frontend fe\n mode tcp\n bind {fe}\n option tcplog\n default_backend be\nbackend be\n mode http\n server s1 {srv}\n')
c2('logformat-times',[[('s',G),('r',b'hi')]],cfg=fe('log-format "%ci %fi %Th/%Ti/%TR/%Tw/%Tc/%Tr/%Td %ST %tsc %rc %HM %HP %HQ %HU %HV %sp %si"').replace('    option httplog\n','',1))
c2('logformat-json',[[('s',b'GET /a"b HTTP/1.1\r\nHost: h\r\nUser-Agent: x"y\\z\r\n\r\n'),('r',b'hi')]],cfg=fe('capture request header User-Agent len 30','log-format "%{{+Q}}r %{{+Q}}[capture.req.hdr(0)] %{{+Q,+E}}[capture.req.hdr(0)] %hr %hrl"').replace('    option httplog\n','',1))
c2('uri-ctl',[[('s',b'GET /a\x7fb HTTP/1.1\r\nHost: h\r\n\r\n'),E_]])
c2('hdr-8bit',[[('s',b'GET /a HTTP/1.1\r\nHost: h\r\nX: \xe9\x01\r\n\r\n'),E_]])
c2('hdr-8bit2',[[('s',b'GET /a HTTP/1.1\r\nHost: h\r\nX: \xe9\r\n\r\n'),('r',b'hi')]],cfg=fe('capture request header X len 30'))
c2('maxconn-q',[[('s',G),('r',b'hi')]],cfg=fe(srv='server s1 {srv} maxconn 1'))
c2('options-star',[[('s',b'OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n'),('r',b'hi')]])
c2('weird-method',[[('s',b'FOO /x HTTP/1.1\r\nHost: h\r\n\r\n'),('r',b'hi')]])
c2('lf-only',[[('s',b'GET / HTTP/1.1\nHost: h\n\n'),E_]])
c2('te-gzip',[[('s',b'POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\nxx'),E_]])
c2('te-gzip-chunked',[[('s',b'POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'),('r',b'hi')]],[[('r',),('s',OK),('e',)]])
c2('neg-cl',[[('s',b'POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n'),E_]])
c2('obs-fold',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n'),E_]])
c2('space-colon',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nA : b\r\n\r\n'),E_]])
c2('empty-name',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n'),E_]])
c2('connect-nohost',[[('s',b'CONNECT h:80 HTTP/1.1\r\n\r\n'),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\r\n\r\n'),('c',)]])
c2('post-10',[[('s',b'POST / HTTP/1.0\r\nHost: h\r\nContent-Length: 2\r\n\r\nab'),E_]],[[('r',b'ab'),('s',OK),('e',)]])
c2('100-10',[[('s',b'POST / HTTP/1.0\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nab'),E_]],[[('r',b'ab'),('s',b'HTTP/1.1 100 Continue\r\n\r\n'),('s',OK),('e',)]])
c2('resp-1xx-only',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.1 100 Continue\r\n\r\n'),('c',)]])
c2('resp-101-unasked',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.1 101 Sw\r\n\r\n'),('e',)]])
c2('resp-304-body',[[('s',G),('r',),('w',.1),('h',),E_]],[[('r',),('s',b'HTTP/1.1 304 NM\r\n\r\n'),('e',)]])
c2('resp-trailers',[[('s',b'GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\n'),('r',b'X-B: 2\r\n\r\n'.lower())]],[[('r',),('s',b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-B\r\n\r\n1\r\na\r\n0\r\nX-B: 2\r\n\r\n'),('e',)]])
c2('nolf-resp',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.1 200 OK\nContent-Length: 2\n\nhi'),('e',)]])
c2('resp-10-chunked',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n'),('e',)]])
c2('resp-10-close',[[('s',G),E_]],[[('r',),('s',b'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi'),('e',)]])
c2('resp-10-http10',[[('s',b'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n'),E_]],[[('r',),('s',b'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi'),('e',)]])
