#!/usr/bin/env python3
"""Runs the same scripted clients and origins through HAProxy and Spangate and shows where log lines or bytes differ.

    HAPROXY=.../haproxy PROGRAM=target/release/spangate tools/compare/compare.py [PART-OF-A-NAME ...]

With names, whole results are shown, without them only the lines that differ. Not compared: the byte count of HTTP lines (HAProxy
counts its internal form of a message), times to less than 100 ms, ports, a FIN or a RST towards the origin, texts of error pages.
"""
import os, re, select, socket, struct, subprocess, sys, threading, time
import tempfile
HAP=os.environ['HAPROXY']; SPG=os.environ.get('PROGRAM','target/release/spangate')
DIR=tempfile.mkdtemp()
BASE='''
global
    log {log} local0 debug
defaults
    mode http
    log global
    timeout connect 300ms
    timeout client 500ms
    timeout server 500ms
'''
def rst(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii',1,0)); s.close()
class Origin(threading.Thread):
    # script: list of connections; each a list of ops: ('r',) read head(+quiet) ; ('s',bytes) ; ('w',sec) ; ('c') close; ('R') reset
    def __init__(self, script):
        super().__init__(daemon=True)
        self.l=socket.socket(); self.l.bind(('127.0.0.1',0)); self.l.listen(50); self.port=self.l.getsockname()[1]
        self.script=script; self.got=[]; self.stop=False
    def run(self):
        self.l.settimeout(0.1); i=0; ts=[]
        while not self.stop:
            try: c,_=self.l.accept()
            except socket.timeout: continue
            except OSError: break
            ops=self.script[min(i,len(self.script)-1)] if self.script else []
            self.got.append(b''); 
            t=threading.Thread(target=play,args=(c,ops,self,i),daemon=True); t.start(); ts.append(t); i+=1
        for t in ts: t.join(1)
def play(c,ops,sink,i):
    c.settimeout(3)
    def add(b): sink.got[i]+=b
    try:
        for op in ops:
            k=op[0]
            if k=='s': c.sendall(op[1])
            elif k=='w': time.sleep(op[1])
            elif k=='r': # read until pattern
                pat=op[1] if len(op)>1 else b'\r\n\r\n'; buf=b''
                while pat not in buf:
                    d=c.recv(65536)
                    if not d: add(b'<EOF>'); return
                    buf+=d; add(d)
            elif k=='e': # read until EOF
                while True:
                    d=c.recv(65536)
                    if not d: add(b'<EOF>'); break
                    add(d)
            elif k=='h': c.shutdown(socket.SHUT_WR)
            elif k=='R': rst(c); return
            elif k=='c': c.close(); return
    except ConnectionResetError: add(b'<RST>')
    except (socket.timeout): add(b'<TIMEOUT>')
    except OSError as e: add(b'<ERR %s>'%str(e).encode())
    c.close()
def freeport():
    s=socket.socket(); s.bind(('127.0.0.1',0)); p=s.getsockname()[1]; s.close(); return p
class Sink: pass
def run(prog,case):
    o=Origin(case.get('origin',[])); 
    o.start()
    log=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); log.bind(('127.0.0.1',0)); log.settimeout(0.35)
    fe=freeport(); dead=freeport()
    cfg=(case.get('base',BASE)+case['cfg']).format(log='127.0.0.1:%d'%log.getsockname()[1],fe='127.0.0.1:%d'%fe,srv='127.0.0.1:%d'%o.port,dead='127.0.0.1:%d'%dead,dir=DIR)
    path=DIR+'/%s-%s.cfg'%('h' if prog==HAP else 's',case['name']); open(path,'w').write(cfg)
    p=subprocess.Popen([prog,'-db','-f',path],stdout=subprocess.PIPE,stderr=subprocess.STDOUT)
    for _ in range(100):
        # readiness without connecting: look in /proc/net/tcp
        if ':%04X 00000000:0000 0A'%fe in open('/proc/net/tcp').read(): break
        if p.poll() is not None: break
        time.sleep(0.02)
    clients=[]
    for ops in case['clients']:
        s=Sink(); s.got=[b'']; 
        try: c=socket.create_connection(('127.0.0.1',fe))
        except OSError as e: s.got=[str(e).encode()]; clients.append(s); continue
        play(c,ops,s,0); clients.append(s)
    lines=[]
    end=time.time()+case.get('wait',0.1)
    while True:
        try: lines.append(log.recv(65536).decode('latin1'))
        except socket.timeout:
            if time.time()>end: break
    o.stop=True
    p.terminate(); out=p.communicate()[0].decode('latin1')
    o.join(2)
    def norm(t):
        t=re.sub(r'<\d+>\w+ +\d+ [\d:]+ (\S+ )?\w+\[\d+\]: ','',t) if not case.get('hdr') else t
        t=re.sub(r'127\.0\.0\.1:%d'%fe,'FE',t); t=re.sub(r'127\.0\.0\.1:%d'%o.port,'SRV',t)
        t=re.sub(r'127\.0\.0\.1:%d'%dead,'DEAD',t)
        t=re.sub(r'127\.0\.0\.1:\d+','127.0.0.1:P',t); t=re.sub(r'\[\d+/\w+/\d{4}:[\d:.]+\]','[DATE]',t)
        if not case.get('times'):
            t=re.sub(r' ([-+\d]+(?:/[-+\d]+)+) (?=\d{3} |\d+ |\+\d+ )', lambda m:' '+'/'.join(x if x=='-1' else ('+' if x[0]=='+' else '')+str(round(int(x)/100)*100) for x in m.group(1).split('/'))+' ',t,count=1)
        if not case.get('bytes'): t=re.sub(r'(/\+?\d+ (?:-1|\d{3}|0) )(\+?)\d+ ',r'\1\2B ',t,count=1)
        return t.rstrip('\n')
    lines=[norm(l) for l in lines if not re.search(r'(Proxy|Server|Stopping|Loading|New worker|ALERT|sendmsg)',l)]
    out='\n'.join(l for l in out.splitlines() if 'ALERT' in l or 'panick' in l or ('WARN' in l and case.get('warn')))
    return dict(log=lines,client=[x for s in clients for x in s.got],origin=o.got,out=norm(out))
def lines(r):
    out=r['log']+[' '.join([k,x.decode('latin1').replace('\r\n','|').replace('\n',' ')]) for k in ('client','origin') for x in r[k]]
    return out+([r['out']] if r['out'] else [])
def plain(line):
    line=re.sub(r'127\.0\.0\.1:\d+|TCP4 127\S+ 127\S+ \d+ \d+','',line).replace('<RST>','<EOF>')
    if '<html>' in line: line=re.sub(r'content-length: \d+\||connection: close\||<html>.*</html>','',line)
    return line
if __name__=='__main__':
    import cases
    from concurrent.futures import ThreadPoolExecutor
    open(DIR+'/503.http','w').write('HTTP/1.0 503 Svc\r\nCache-Control: no-cache\r\nContent-Type: text/plain\r\n\r\nsorry\n')
    want=sys.argv[1:]; same=0
    todo=[c for c in cases.CASES if not want or any(w in c['name'] for w in want)]
    with ThreadPoolExecutor(8) as pool: results=list(pool.map(lambda c:(run(HAP,c),run(SPG,c)),todo))
    for c,(a,b) in zip(todo,results):
        a,b=lines(a),lines(b)
        equal=sorted(map(plain,a))==sorted(map(plain,b))
        same+=equal
        if equal and not want: continue
        print('==',c['name'],'(the same)' if equal else '')
        for x in a:
            if want or x not in b: print('  haproxy  ',x[:400])
        for x in b:
            if want or x not in a: print('  spangate ',x[:400])
    print(same,'of',len(todo),'are the same')
