//! Conditions, one per line.

pub const CONDITIONS: &str = r#"
    named
    !named
    { path /form }
    { path -i /FORM }
    { path_beg /a/ }
    { path_end .html .htm }
    { path_sub b%20 }
    { path_dir b%20c }
    { path_dir a }
    { path_dir /a/ }
    { path_dom d.html }
    { path_len 5 }
    { path_len 1:4 }
    { path_len gt 5 }
    { path_reg ^/[a-f]/ }
    { path_reg -i ^/A/ }
    { path -m reg -i ^/FORM$ }
    { path -m found }
    { path -m len 5 }
    { path -m str /form /x }
    { path -m beg /f }
    { path -m end m l }
    { path -m sub or tm }
    { path -m dir form }
    { path -m dom form }
    { path -f @/words.lst }
    { path_sub -f @/words.lst }
    { path_sub -i -f @/words.lst other }
    { path -m beg -f @/words.lst }
    { req.hdr(x-list) one }
    { req.hdr(x-list) three }
    { req.hdr(x-list) -m found }
    { req.hdr(x-none) -m found }
    { req.hdr(x-empty) -m found }
    { req.hdr(x-empty) -m len 0 }
    { req.hdr(x-list) -f @/words.lst }
    { req.fhdr(x-list) -m sub two }
    { req.hdr_cnt(x-list) 4 }
    { req.hdr_cnt(x-list) 0:1 }
    { hdr_val(x-num) -- -17 }
    { hdr_val(x-num) lt 0 }
    { hdr_val(x-num) -- le -17 }
    { hdr_val(x-num) ge 10 le 20 }
    { hdr_val(x-num) 10:20 }
    { hdr_val(x-num) -f @/numbers.lst }
    { req.hdr(x-num) -m int 12 }
    { req.hdr(x-num) -m int -f @/numbers.lst }
    { hdr_ip(x-forwarded-for) 192.0.2.0/24 }
    { hdr_ip(x-forwarded-for) 10.1.2.3 }
    { hdr_ip(x-forwarded-for,1) 192.0.2.0/24 }
    { hdr_ip(x-ip) 2001:db8::/32 }
    { hdr_ip(x-ip) 10.0.0.0/8 }
    { hdr_ip(x-ip) -f @/nets.lst }
    { hdr_ip(x-forwarded-for) -f @/nets.lst }
    { src 127.0.0.0/8 }
    { src 127.0.0.1 }
    { src 127.0.0.2 127.1/16 }
    { src -f @/nets.lst }
    { src_port 1:65535 }
    { dst_port lt 1024 }
    { method GET }
    { method POST OPTIONS }
    { method FOO }
    { method -i get }
    { url_beg http:// }
    { url_reg q$ }
    { url_ip 127.0.0.1 }
    { urlp(x) 1 }
    { urlp(x) 3 }
    { urlp_val(x) 3 }
    { url_param(y) -m found }
    { cook(a) 1 }
    { cook(a) 3 }
    { cook(e) -m found }
    { cook_cnt(a) 2 }
    { cook_val(a) 1:2 }
    { req.ver 1.0 }
    { req.ver 1.1 }
    { req.ver 0.9:1.0 }
    { req.body_len gt 0 }
    { req.body -m sub name }
    { req.body -m bin 6e616d65 }
    { req.hdr(x-hex) -m bin 48656c6c6f }
    { bin(48656c6c6f) -m bin 48656c6c6f }
    { bin(48656c6c6f) -m str Hello }
    { var(txn.int) -m int 42 }
    { var(txn.int) -m int gt 42 }
    { var(txn.str) -m str variable }
    { var(txn.none) -m found }
    { var(txn.ip) -m ip 127.0.0.0/8 }
    { var(txn.int) -m bool }
    { always_true }
    { always_false } || { path_beg /a }
    { path_beg /a } { method GET }
    { path_beg /a } !{ method GET }
    !{ path_beg /a } !{ method GET }
    { path_beg /a } or { method OPTIONS }
    named { method POST } or TRUE !named
    METH_GET
    METH_POST
    HTTP_1.0
    HTTP_1.1
    HTTP_URL_ABS
    HTTP_URL_SLASH
    HTTP_URL_STAR
    HTTP_CONTENT
    LOCALHOST
    FALSE
    { nbsrv(b) ge 1 }
    { nbsrv(b) 2 }
    { req.hdr(accept-language),language(en;da) -m str en }
    { req.hdr(host),lower,map_dom(@/str.map) -m found }
    { path,map_beg(@/beg.map) root }
    { path,map_beg(@/beg.map) -m str below-b form }
    { path,length gt 4 }
    { path,length,add(3),mod(7) 1 }
    { path,lower -m reg ^/(form|a) }
    { req.fhdr(x-text) -m reg ^.*World.*$ }
    { req.fhdr(x-text) -m reg 'W[a-z]+d\b' }
    { req.fhdr(x-text) -m reg [[:upper:]] }
    { req.fhdr(x-text) -m reg \\back }
    { src,ipmask(8) 127.0.0.0 }
    { int(3) 1:2 3 }
    { bool(1) }
    { str(a) -m str -- -i a }
    { str(-i) -- -i }
    { str(a) -m beg '' }
    { str(a) -m end '' }
    { str(a) -m sub '' }
    { str() -m str '' }
    { acl(named) }
    { acl(!named,METH_GET) }
"#;
