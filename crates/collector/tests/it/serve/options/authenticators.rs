//! Who a collector says that it is.

use hyper::header::HeaderMap;

use super::exporter::back_end;
use super::*;

/// The fields of a request of a collector with an authenticator.
async fn told(authenticator: &str, fields: &str) -> HeaderMap {
    let (at, came) = back_end(200).await;
    let id = authenticator.split(':').next().expect("an id");
    let exporter = format!(
        "otlphttp: {{ endpoint: 'http://{at}', headers: {{ {fields} }}, auth: {{ authenticator: {id} }} }}"
    );
    let extensions = format!("extensions: {{ {authenticator} }}");
    let front = sender(&exporter, "otlphttp", &extensions, id);
    taken(&grpc(&front), request(0, 10)).await;
    until("it comes", || traces(&front).exported == 20).await;
    let came = came.lock().expect("no panic");
    came[0].1.clone()
}

fn file_of(text: &str) -> TempFile {
    let file = TempFile::new();
    std::fs::write(&file.0, text).expect("a file");
    file
}

#[tokio::test]
async fn a_name_and_a_password_may_be_in_files() {
    let (name, password) = (file_of("me"), file_of("word\n"));
    let basic = format!(
        "basicauth: {{ client_auth: {{ username_file: '{}', password_file: '{}' }} }}",
        name.0.display(),
        password.0.display()
    );
    let fields = told(&basic, "").await;
    assert_eq!(fields["authorization"], "Basic bWU6d29yZA==");
}

#[tokio::test]
async fn a_token_has_the_field_and_the_scheme_of_the_settings() {
    let token = file_of("secret\n");
    let bearer = format!(
        "bearertokenauth: {{ header: X-Token, scheme: Key, filename: '{}' }}",
        token.0.display()
    );
    assert_eq!(told(&bearer, "").await["x-token"], "Key secret");
}

#[tokio::test]
async fn fields_are_set_and_taken_away_as_the_settings_say() {
    let headers = "headers_setter: { headers: [ \
        { key: x-set, action: upsert, value: new }, \
        { key: x-there, action: insert, value: new }, \
        { key: x-new, action: insert, value: new }, \
        { key: x-old, action: update, value: new }, \
        { key: x-none, action: update, value: new }, \
        { key: x-gone, action: delete } ] }";
    let fields = "x-set: old, x-there: old, x-old: old, x-gone: old";
    let fields = told(headers, fields).await;
    let field = |name: &str| fields.get(name).map(|value| value.to_str().expect("text"));
    for (name, value) in [
        ("x-set", Some("new")),
        ("x-there", Some("old")),
        ("x-new", Some("new")),
        ("x-old", Some("new")),
        ("x-none", None),
        ("x-gone", None),
    ] {
        assert_eq!(field(name), value, "{name}");
    }
}

#[tokio::test]
async fn whom_a_receiver_knows_may_be_told_on() {
    let (at, came) = back_end(200).await;
    let front = start(&format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0', auth: {{ authenticator: basicauth }} }} }} }} }}\n\
         extensions: {{ basicauth: {{ htpasswd: {{ inline: 'me:word' }} }}, \
         headers_setter: {{ headers: [ {{ key: x-user, from_attribute: username }} ] }} }}\n\
         exporters: {{ otlphttp: {{ endpoint: 'http://{at}', auth: {{ authenticator: headers_setter }} }} }}\n\
         service: {{ {NO_METRICS}, extensions: [basicauth, headers_setter], pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlphttp] }} }} }}"
    ));
    let me = [("authorization", "Basic bWU6d29yZA==")];
    taken(&grpc_with(&front, &me), request(0, 10)).await;
    until("it comes", || traces(&front).exported == 20).await;
    let came = came.lock().expect("no panic");
    assert_eq!(came[0].1["x-user"], "me");
}
