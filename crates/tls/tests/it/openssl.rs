//! Chains of certificates, judged here and by the installed `openssl`: the same verdict, the same
//! errors at the same depths.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    CustomExtension, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, KeyIdMethod, KeyPair,
    KeyUsagePurpose, NameConstraints, RevokedCertParams, SerialNumber, date_time_ymd,
};
use spangate_tls::{
    AcceptorOptions, Authorities, ClientCertificates, Connector, ConnectorOptions, FailureKind,
    Identity, IgnoredErrors, Reason, Revocations, Trusted, Verdict, Verification,
};

use crate::pairs::{Authority, End, Kind, Pair, acceptor, plain};

/// A certificate with its key, which can issue others.
struct Made(CertifiedIssuer<'static, KeyPair>);

impl Made {
    fn new(name: &str, by: Option<&Made>, change: impl FnOnce(&mut CertificateParams)) -> Made {
        let mut params = CertificateParams::new([format!("{name}.test")]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Made(match by {
            None => CertifiedIssuer::self_signed(params, key).unwrap(),
            Some(by) => CertifiedIssuer::signed_by(params, key, &by.0).unwrap(),
        })
    }

    fn root(name: &str) -> Made {
        Made::new(name, None, is_authority)
    }

    fn between(by: &Made) -> Made {
        Made::new("between", Some(by), is_authority)
    }

    fn leaf(by: &Made) -> Made {
        Made::new("leaf", Some(by), |_| {})
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    /// Its revocation list.
    fn list(&self, revoked: &[u8], until: i32) -> String {
        let entry = |serial: &u8| RevokedCertParams {
            serial_number: SerialNumber::from(u64::from(*serial)),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: revoked.iter().map(entry).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.0).unwrap().pem().unwrap()
    }
}

fn is_authority(params: &mut CertificateParams) {
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
}

fn has_expired(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2021, 1, 1);
}

fn is_too_early(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2200, 1, 1);
}

fn serial(number: u64) -> impl Fn(&mut CertificateParams) {
    move |params| params.serial_number = Some(SerialNumber::from(number))
}

fn purposes(of: &[ExtendedKeyUsagePurpose]) -> impl Fn(&mut CertificateParams) {
    let of = of.to_vec();
    move |params| params.extended_key_usages.clone_from(&of)
}

fn usages(of: &[KeyUsagePurpose]) -> impl Fn(&mut CertificateParams) {
    let of = of.to_vec();
    move |params| params.key_usages.clone_from(&of)
}

/// What a peer sends, and what the other side trusts.
struct Case {
    name: &'static str,
    /// The peer's certificate with its key, then the rest of its chain, PEM.
    sent: [String; 3],
    trusted: String,
    lists: Vec<String>,
}

fn case(name: &'static str, sent: &[&Made], trusted: &[&Made], lists: &[String]) -> Case {
    let pem = |all: &[&Made]| all.iter().map(|each| each.pem()).collect::<String>();
    Case {
        name,
        sent: [
            pem(&sent[..1]),
            sent[0].0.key().serialize_pem(),
            pem(&sent[1..]),
        ],
        trusted: pem(trusted),
        lists: lists.to_vec(),
    }
}

fn cases() -> Vec<Case> {
    use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
    use KeyUsagePurpose::{CrlSign, DigitalSignature, KeyCertSign, KeyEncipherment};
    let both = |a: fn(&mut CertificateParams), b: fn(&mut CertificateParams)| {
        move |params: &mut CertificateParams| {
            a(params);
            b(params);
        }
    };
    let (root, other) = (Made::root("root"), Made::root("other"));
    let between = Made::between(&root);
    let leaf = Made::leaf(&between);
    let below = |change: fn(&mut CertificateParams)| Made::new("leaf", Some(&between), change);
    let under = |by: &Made| Made::leaf(by);
    let mut all = vec![
        case("good", &[&leaf, &between], &[&root], &[]),
        case("good, root sent", &[&leaf, &between, &root], &[&root], &[]),
        case("directly by the root", &[&under(&root)], &[&root], &[]),
        case("intermediate missing", &[&leaf], &[&root], &[]),
        case("issuer unknown", &[&leaf, &between], &[&other], &[]),
        case("root untrusted", &[&leaf, &between, &root], &[&other], &[]),
        case(
            "only the intermediate trusted",
            &[&leaf, &between],
            &[&between],
            &[],
        ),
        case(
            "intermediate and root trusted",
            &[&leaf],
            &[&between, &root],
            &[],
        ),
    ];
    let own = Made::new("leaf", None, |_| {});
    let old_own = Made::new("leaf", None, has_expired);
    all.extend([
        case("self-signed", &[&own], &[&root], &[]),
        case("self-signed and trusted", &[&own], &[&own], &[]),
        case(
            "self-signed, trusted, expired",
            &[&old_own],
            &[&old_own],
            &[],
        ),
        case(
            "self-signed, untrusted, expired",
            &[&old_own],
            &[&root],
            &[],
        ),
        case("the root itself", &[&root], &[&root], &[]),
    ]);
    // Dates.
    let (expired, early) = (below(has_expired), below(is_too_early));
    let old_between = Made::new("between", Some(&root), both(is_authority, has_expired));
    let old_root = Made::new("root", None, both(is_authority, has_expired));
    let of_old_root = Made::between(&old_root);
    let early_between = Made::new("between", Some(&root), both(is_authority, is_too_early));
    let old_everywhere = Made::new("leaf", Some(&old_between), has_expired);
    all.extend([
        case("expired", &[&expired, &between], &[&root], &[]),
        case("early", &[&early, &between], &[&root], &[]),
        case(
            "expired intermediate",
            &[&under(&old_between), &old_between],
            &[&root],
            &[],
        ),
        case(
            "early intermediate",
            &[&under(&early_between), &early_between],
            &[&root],
            &[],
        ),
        case(
            "expired root",
            &[&under(&of_old_root), &of_old_root],
            &[&old_root],
            &[],
        ),
        case(
            "expired root, leaf below",
            &[&under(&old_root)],
            &[&old_root],
            &[],
        ),
        case(
            "two expired",
            &[&old_everywhere, &old_between],
            &[&root],
            &[],
        ),
        // Two errors at once: neither hides the other.
        case(
            "expired, foreign, chain sent",
            &[&expired, &between],
            &[&other],
            &[],
        ),
        case("expired, foreign, alone", &[&expired], &[&other], &[]),
        case(
            "expired, foreign, with root",
            &[&expired, &between, &root],
            &[&other],
            &[],
        ),
        case(
            "two expired, foreign",
            &[&old_everywhere, &old_between],
            &[&other],
            &[],
        ),
        case("early and foreign", &[&early, &between], &[&other], &[]),
    ]);
    // Purposes, authorities, path lengths.
    let for_servers = Made::new("leaf", Some(&between), purposes(&[ServerAuth]));
    let for_clients = Made::new("leaf", Some(&between), purposes(&[ClientAuth]));
    let enciphers = Made::new("leaf", Some(&between), usages(&[KeyEncipherment]));
    let signs = Made::new("leaf", Some(&between), usages(&[DigitalSignature]));
    let authority_for = |purpose: ExtendedKeyUsagePurpose| {
        Made::new("between", Some(&root), |params| {
            is_authority(params);
            params.extended_key_usages = vec![purpose];
        })
    };
    let (servers_only, clients_only) = (authority_for(ServerAuth), authority_for(ClientAuth));
    let no_authority = Made::new("between", Some(&root), |_| {});
    let denies_it = Made::new("between", Some(&root), |params| {
        params.is_ca = IsCa::ExplicitNoCa;
    });
    let cannot_sign = Made::new("between", Some(&root), |params| {
        is_authority(params);
        params.key_usages = vec![CrlSign];
    });
    let short_root = Made::new("short", None, |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    });
    let below_short = Made::between(&short_root);
    let no_root = Made::new("none", None, |_| {});
    let expired_for_servers = Made::new("leaf", Some(&between), |params| {
        has_expired(params);
        params.extended_key_usages = vec![ServerAuth];
    });
    all.extend([
        case("for servers", &[&for_servers, &between], &[&root], &[]),
        case("for clients", &[&for_clients, &between], &[&root], &[]),
        case("for enciphering", &[&enciphers, &between], &[&root], &[]),
        case("for signing", &[&signs, &between], &[&root], &[]),
        case(
            "authority for servers",
            &[&under(&servers_only), &servers_only],
            &[&root],
            &[],
        ),
        case(
            "authority for clients",
            &[&under(&clients_only), &clients_only],
            &[&root],
            &[],
        ),
        case(
            "no authority",
            &[&under(&no_authority), &no_authority],
            &[&root],
            &[],
        ),
        case(
            "authority that denies it",
            &[&under(&denies_it), &denies_it],
            &[&root],
            &[],
        ),
        case(
            "authority without keyCertSign",
            &[&under(&cannot_sign), &cannot_sign],
            &[&root],
            &[],
        ),
        case(
            "path too long",
            &[&under(&below_short), &below_short],
            &[&short_root],
            &[],
        ),
        case(
            "path not too long",
            &[&under(&short_root)],
            &[&short_root],
            &[],
        ),
        case(
            "root is no authority",
            &[&under(&no_root)],
            &[&no_root],
            &[],
        ),
        case(
            "expired, for servers",
            &[&expired_for_servers, &between],
            &[&root],
            &[],
        ),
        case(
            "for servers and foreign",
            &[&for_servers, &between],
            &[&other],
            &[],
        ),
        case("an authority as peer", &[&between], &[&root], &[]),
    ]);
    // Signatures, unknown extensions, key identifiers, name constraints.
    let false_root = Made::root("root");
    let forged = Made::leaf(&false_root);
    let expired_forged = Made::new("leaf", Some(&false_root), has_expired);
    let named_key = Made::new("leaf", Some(&false_root), |params| {
        params.use_authority_key_identifier_extension = true;
    });
    let constrained = Made::new("between", Some(&root), |params| {
        is_authority(params);
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: vec![GeneralSubtree::DnsName("example.org".to_owned())],
            excluded_subtrees: Vec::new(),
        });
    });
    let outside_expired = Made::new("leaf", Some(&constrained), has_expired);
    all.extend([
        case("forged", &[&forged], &[&root], &[]),
        case("forged and expired", &[&expired_forged], &[&root], &[]),
        case("key of another authority", &[&named_key], &[&root], &[]),
        case(
            "name constraints",
            &[&under(&constrained), &constrained],
            &[&root],
            &[],
        ),
        case(
            "expired, name constraints",
            &[&outside_expired, &constrained],
            &[&root],
            &[],
        ),
    ]);
    // Revocation.
    let two = Made::new("between", Some(&root), |params| {
        is_authority(params);
        serial(2)(params);
    });
    let three = Made::new("leaf", Some(&two), serial(3));
    let old_three = Made::new("leaf", Some(&two), |params| {
        has_expired(params);
        serial(3)(params);
    });
    let mute = Made::new("mute", None, |params| {
        is_authority(params);
        params.key_usages = vec![KeyCertSign];
    });
    let signs_lists = Made(
        CertifiedIssuer::self_signed(
            {
                let mut params = CertificateParams::new(["mute.test".to_owned()]).unwrap();
                params.distinguished_name.push(DnType::CommonName, "mute");
                is_authority(&mut params);
                params
            },
            KeyPair::from_pem(&mute.0.key().serialize_pem()).unwrap(),
        )
        .unwrap(),
    );
    let empty = [root.list(&[], 2200), two.list(&[], 2200)];
    let no_leaf = [root.list(&[], 2200), two.list(&[3], 2200)];
    let no_between = [root.list(&[2], 2200), two.list(&[], 2200)];
    let forged_list = [root.list(&[], 2200), Made::between(&root).list(&[], 2200)];
    let chain = [&three, &two];
    all.extend([
        case("not revoked", &chain, &[&root], &empty),
        case("revoked", &chain, &[&root], &no_leaf),
        case("intermediate revoked", &chain, &[&root], &no_between),
        case("no list of the intermediate", &chain, &[&root], &empty[..1]),
        case("no list of the root", &chain, &[&root], &empty[1..]),
        case(
            "a stranger's list",
            &chain,
            &[&root],
            &[other.list(&[], 2200)],
        ),
        case("list is forged", &chain, &[&root], &forged_list),
        case(
            "expired and revoked",
            &[&old_three, &two],
            &[&root],
            &no_leaf,
        ),
        case("revoked and foreign", &chain, &[&other], &no_leaf),
        case(
            "expired, no list",
            &[&old_three, &two],
            &[&root],
            &empty[..1],
        ),
        case(
            "expired list",
            &chain,
            &[&root],
            &[root.list(&[], 2200), two.list(&[], 2021)],
        ),
        case(
            "expired list of the root",
            &chain,
            &[&root],
            &[root.list(&[], 2021), two.list(&[], 2200)],
        ),
        case(
            "expired lists, revoked",
            &chain,
            &[&root],
            &[root.list(&[2], 2021), two.list(&[3], 2021)],
        ),
        case(
            "expired, and its list",
            &[&old_three, &two],
            &[&root],
            &[root.list(&[], 2200), two.list(&[], 2021)],
        ),
        case(
            "old and new list",
            &chain,
            &[&root],
            &[
                root.list(&[], 2200),
                two.list(&[], 2021),
                two.list(&[], 2200),
            ],
        ),
        case("revoked self-signed", &[&two, &root], &[&root], &no_between),
        case(
            "authority may not sign lists",
            &[&under(&mute)],
            &[&mute],
            &[signs_lists.list(&[], 2200)],
        ),
    ]);
    all
}

/// An error at a depth, as OpenSSL reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fault {
    number: u8,
    depth: u8,
}

/// A folder for the files of one case.
struct Folder(PathBuf);

impl Folder {
    fn new(of: &str) -> Folder {
        let name = format!("spangate-tls-{of}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, content: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// A server stops at the end of its input, a client ends its connection then.
fn openssl(arguments: &[&str], input: Stdio) -> Process {
    let mut command = Command::new("openssl");
    command.args(arguments).stdin(input);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Process(command.spawn().unwrap())
}

/// Every error that `openssl s_server` finds in the certificates of a client.
fn errors_of_client(folder: &Folder, case: &Case, server: &[String; 2]) -> Vec<Fault> {
    let trusted = folder.write("ca.pem", &(case.trusted.clone() + &case.lists.concat()));
    let leaf = folder.write("leaf.pem", &case.sent[0]);
    let key = folder.write("leaf.key", &case.sent[1]);
    let chain = folder.write("chain.pem", &case.sent[2]);
    let [server, server_key] = server;
    let mut arguments = vec![
        "s_server",
        "-accept",
        "127.0.0.1:0",
        "-naccept",
        "1",
        "-cert",
        server,
        "-key",
        server_key,
        "-CAfile",
        &trusted,
        "-no-CApath",
        "-no-CAstore",
        "-Verify",
        "20",
    ];
    if !case.lists.is_empty() {
        arguments.extend(["-crl_check", "-crl_check_all"]);
    }
    let mut process = openssl(&arguments, Stdio::piped());
    let mut output = BufReader::new(process.0.stdout.take().unwrap());
    let mut line = String::new();
    let address = loop {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "{}", case.name);
        if let Some(address) = line.trim().strip_prefix("ACCEPT ") {
            break address.to_owned();
        }
    };
    let mut arguments = vec![
        "s_client",
        "-connect",
        &address,
        "-cert",
        &leaf,
        "-key",
        &key,
        "-no-CAfile",
        "-no-CApath",
        "-no-CAstore",
    ];
    if !case.sent[2].is_empty() {
        arguments.extend(["-cert_chain", &chain]);
    }
    let mut client = openssl(&arguments, Stdio::null());
    let mut errors = String::new();
    let mut stream = process.0.stderr.take().unwrap();
    stream.read_to_string(&mut errors).unwrap();
    client.0.wait().unwrap();
    let mut faults = Vec::new();
    let mut depth = 0;
    let mut is_checked = false;
    for line in errors.lines() {
        if let Some(at) = line.strip_prefix("depth=") {
            is_checked = true;
            depth = at.split(' ').next().unwrap().parse().unwrap();
        } else if let Some(error) = line.strip_prefix("verify error:num=") {
            let number = error.split(':').next().unwrap().parse().unwrap();
            faults.push(Fault { number, depth });
        }
    }
    assert!(is_checked, "{}: {errors}", case.name);
    faults
}

/// Whether `openssl verify` accepts the certificates of a server.
fn is_good_server(folder: &Folder, case: &Case) -> bool {
    let trusted = folder.write("ca.pem", &(case.trusted.clone() + &case.lists.concat()));
    let leaf = folder.write("leaf.pem", &case.sent[0]);
    let chain = folder.write("chain.pem", &case.sent[2]);
    let mut arguments = vec![
        "verify",
        "-purpose",
        "sslserver",
        "-CAfile",
        &trusted,
        "-no-CApath",
        "-no-CAstore",
    ];
    if !case.sent[2].is_empty() {
        arguments.extend(["-untrusted", &chain]);
    }
    if !case.lists.is_empty() {
        arguments.extend(["-crl_check", "-crl_check_all"]);
    }
    arguments.push(&leaf);
    openssl(&arguments, Stdio::null())
        .0
        .wait()
        .unwrap()
        .success()
}

fn identity(case: &Case) -> Identity {
    let pem = case.sent[0].clone() + &case.sent[2] + &case.sent[1];
    Identity::parse(pem.as_bytes(), None, None, Path::new("leaf.pem")).unwrap()
}

fn trusted(case: &Case) -> Trusted {
    let authorities = Authorities::parse(None, case.trusted.as_bytes(), Path::new("ca")).unwrap();
    let lists = (!case.lists.is_empty())
        .then(|| Revocations::parse(case.lists.concat().as_bytes(), Path::new("crl")).unwrap());
    Trusted::new(&authorities, lists.as_ref())
}

/// The error whose depth is not known here: it must be ignored in all certificates.
const NAME_CONSTRAINTS: u8 = 47;

/// Ignores exactly these errors, of the peer's own certificate and of its issuers.
fn ignoring<'a>(faults: impl Iterator<Item = &'a Fault> + Clone) -> [IgnoredErrors; 2] {
    [false, true].map(|is_issuer| IgnoredErrors {
        all: false,
        numbers: faults
            .clone()
            .filter(|fault| (fault.depth > 0) == is_issuer || fault.number == NAME_CONSTRAINTS)
            .map(|fault| fault.number)
            .collect(),
    })
}

/// A client's session at its end, seen from the server that ignores these errors.
fn server_end(case: &Case, [ignored, ignored_of_issuers]: [IgnoredErrors; 2]) -> End {
    let options = AcceptorOptions {
        clients: Some(ClientCertificates {
            trusted: trusted(case),
            hints: None,
            tells_no_names: false,
            is_optional: false,
            ignored,
            ignored_of_issuers,
        }),
        ..AcceptorOptions::default()
    };
    let server = Authority::new("server").identity(&["server.test"], Kind::Ecdsa);
    let connector = Connector::new(&ConnectorOptions {
        identity: Some(identity(case)),
        ..ConnectorOptions::default()
    });
    let acceptor = acceptor(&options, &[plain(server)]);
    let mut pair = Pair::new(&acceptor, &connector.unwrap(), None);
    pair.talk(usize::MAX);
    pair.server
}

/// The verdict on a client whose errors are ignored so; none if it is refused.
fn verdict(case: &Case, ignored: [IgnoredErrors; 2]) -> Option<Verdict> {
    let server = server_end(case, ignored);
    let is_taken = server.failure.is_none() && server.session.is_established();
    is_taken.then(|| server.session.facts().unwrap().verdict)
}

/// What is known of a client that was refused.
#[derive(Debug, PartialEq, Eq)]
struct Refused {
    kind: FailureKind,
    verdict: Verdict,
    certificates: usize,
}

fn refused(case: &Case) -> Option<Refused> {
    let server = server_end(case, [IgnoredErrors::default(), IgnoredErrors::default()]);
    let failure = server.failure.as_ref()?;
    let facts = server.session.facts().expect("both sides have chosen");
    assert_eq!(failure.reason, Some(Reason::CertificateVerifyFailed));
    Some(Refused {
        kind: failure.kind,
        verdict: facts.verdict,
        certificates: facts.peer.len(),
    })
}

/// What is known of a client that is refused for its first error.
fn refused_for(case: &Case, first: &Fault) -> Refused {
    let is_issuer = first.depth > 0;
    let number_if = |holds: bool| if holds { first.number } else { 0 };
    Refused {
        kind: if is_issuer {
            FailureKind::Authority
        } else {
            FailureKind::Certificate
        },
        verdict: Verdict {
            last: first.number,
            own: number_if(!is_issuer),
            issuer: number_if(is_issuer),
            issuer_depth: first.depth,
        },
        certificates: 1 + case.sent[2].matches("BEGIN CERTIFICATE").count(),
    }
}

fn accepts_server(case: &Case) -> bool {
    let acceptor = acceptor(&AcceptorOptions::default(), &[plain(identity(case))]);
    let connector = Connector::new(&ConnectorOptions {
        verification: Verification::Required {
            trusted: trusted(case),
            name: None,
        },
        ..ConnectorOptions::default()
    });
    let mut pair = Pair::new(&acceptor, &connector.unwrap(), None);
    pair.talk(usize::MAX);
    pair.client.failure.is_none()
}

fn all_errors() -> IgnoredErrors {
    IgnoredErrors {
        all: true,
        ..IgnoredErrors::default()
    }
}

#[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    if let Some(path) = std::env::var_os("SPANGATE_SKIPPED") {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.append(true).open(path).unwrap();
        writeln!(file, "{why}").unwrap();
    }
}

#[test]
fn openssl_finds_the_same_errors_at_the_same_depths() {
    if Command::new("openssl").arg("version").output().is_err() {
        return skipped("openssl is not installed");
    }
    let folder = Folder::new("openssl");
    let (certificate, key) =
        Authority::new("server").issue(&["server.test"], "server", Kind::Ecdsa);
    let server = [
        folder.write("server.pem", &certificate),
        folder.write("server.key", &key),
    ];
    let mut wrong = Vec::new();
    for case in cases() {
        let faults = errors_of_client(&folder, &case, &server);
        let of_issuers = faults.iter().find(|fault| fault.depth > 0);
        let expected = Verdict {
            last: faults.last().map_or(0, |fault| fault.number),
            own: faults
                .iter()
                .find(|fault| fault.depth == 0)
                .map_or(0, |fault| fault.number),
            issuer: of_issuers.map_or(0, |fault| fault.number),
            issuer_depth: of_issuers.map_or(0, |fault| fault.depth),
        };
        // An error of name constraints has no depth here.
        let first = faults
            .first()
            .filter(|first| first.number != NAME_CONSTRAINTS);
        if let Some(expected) = first.map(|first| refused_for(&case, first)) {
            let found = refused(&case);
            if found.as_ref() != Some(&expected) {
                wrong.push(format!("{}: {found:?}, not {expected:?}", case.name));
            }
        }
        let mut expect = |what: &str, found: Option<Verdict>, expected: Option<Verdict>| {
            if found != expected {
                wrong.push(format!("{}, {what}: {found:?}, but {faults:?}", case.name));
            }
        };
        let found = verdict(&case, [all_errors(), all_errors()]);
        expect("all ignored", found, Some(expected));
        expect(
            "exactly these ignored",
            verdict(&case, ignoring(faults.iter())),
            Some(expected),
        );
        for fault in &faults {
            let is_alike = |other: &Fault| {
                other.number == fault.number && (other.depth > 0) == (fault.depth > 0)
            };
            let others = faults.iter().filter(|other| !is_alike(other));
            let what = format!("all but {fault:?} ignored");
            expect(&what, verdict(&case, ignoring(others)), None);
        }
        if accepts_server(&case) != is_good_server(&folder, &case) {
            wrong.push(format!("{}, as a server's", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The root `root` with an RSA key, its revocation list by `openssl ca` with a digest, and a
/// client's certificate, which the list revokes or not.
fn with_list(folder: &Folder, digest: &str, version: u8, is_revoked: bool) -> Case {
    let key = KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "root");
    is_authority(&mut params);
    let root = Made(CertifiedIssuer::self_signed(params, key).unwrap());
    let leaf = Made::new("leaf", Some(&root), serial(2));
    let revoked = if is_revoked { "02" } else { "03" };
    let index = format!("R\t490101000000Z\t200101000000Z\t{revoked}\tunknown\t/CN=leaf\n");
    let index = folder.write("index.txt", &index);
    let extensions = match version {
        1 => String::new(),
        _ => "crl_extensions = list\n".to_owned(),
    };
    let configuration = format!(
        "[ca]\ndefault_ca = own\n[own]\ndatabase = {index}\ndefault_crl_days = 9000\n{extensions}\
         [list]\nauthorityKeyIdentifier = keyid\n"
    );
    let arguments = [
        "ca",
        "-gencrl",
        "-config",
        &folder.write("ca.cnf", &configuration),
        "-md",
        digest,
        "-cert",
        &folder.write("root.pem", &root.pem()),
        "-keyfile",
        &folder.write("root.key", &root.0.key().serialize_pem()),
        "-out",
        &folder.write("crl.pem", ""),
    ];
    let mut made = openssl(&arguments, Stdio::null());
    let mut errors = String::new();
    let mut stream = made.0.stderr.take().unwrap();
    stream.read_to_string(&mut errors).unwrap();
    assert!(made.0.wait().unwrap().success(), "{errors}");
    let list = std::fs::read_to_string(folder.0.join("crl.pem")).unwrap();
    case("list", &[&leaf], &[&root], &[list])
}

#[test]
fn lists_may_be_signed_with_sha_1() {
    if Command::new("openssl").arg("version").output().is_err() {
        return skipped("openssl is not installed");
    }
    let folder = Folder::new("lists");
    let ignoring_revoked = || {
        let revoked = Fault {
            number: 23,
            depth: 0,
        };
        ignoring([revoked].iter())
    };
    let revoked = Verdict {
        last: 23,
        own: 23,
        ..Verdict::default()
    };
    for (digest, version) in [("sha256", 1), ("sha256", 2), ("sha1", 1), ("sha1", 2)] {
        let good = with_list(&folder, digest, version, false);
        let expected = Some(Verdict::default());
        assert_eq!(
            verdict(&good, ignoring([].iter())),
            expected,
            "{digest} {version}"
        );
        assert!(accepts_server(&good), "{digest} {version}");
        let bad = with_list(&folder, digest, version, true);
        assert_eq!(
            verdict(&bad, ignoring([].iter())),
            None,
            "{digest} {version}"
        );
        assert_eq!(
            verdict(&bad, ignoring_revoked()),
            Some(revoked),
            "{digest} {version}"
        );
        assert!(!accepts_server(&bad), "{digest} {version}");
        // Another authority of the same name has signed the list.
        let mut forged = with_list(&folder, digest, version, false);
        forged.lists = good.lists.clone();
        assert_eq!(
            verdict(&forged, ignoring([].iter())),
            None,
            "{digest} {version}"
        );
    }
}

#[test]
fn unlike_openssl() {
    let nothing = || ignoring([].iter());
    // The library does not read a certificate with a critical extension that it does not know: no
    // option ignores this.
    let (root, false_root) = (Made::root("root"), Made::root("root"));
    let critical = Made::new("leaf", Some(&root), |params| {
        let mut extension = CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
        extension.set_criticality(true);
        params.custom_extensions.push(extension);
    });
    let critical = case("critical", &[&critical], &[&root], &[]);
    assert_eq!(verdict(&critical, nothing()), None);
    assert_eq!(verdict(&critical, [all_errors(), all_errors()]), None);
    // Of two authorities of the same name, OpenSSL takes the first. Here the signature decides.
    for trusted in [[&root, &false_root], [&false_root, &root]] {
        let leaf = Made::leaf(&false_root);
        let case = case("two roots", &[&leaf], &trusted, &[]);
        assert_eq!(verdict(&case, nothing()), Some(Verdict::default()));
    }
}
