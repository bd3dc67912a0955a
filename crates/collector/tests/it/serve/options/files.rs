//! What the exporter `file` writes.

use super::*;

/// A folder that is gone with this.
struct TempFolder(PathBuf);

impl TempFolder {
    fn new() -> TempFolder {
        let TempFile(path) = &*std::mem::ManuallyDrop::new(TempFile::new());
        TempFolder(path.clone())
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A request of one span for each service; an empty name is no attribute.
fn of_services(services: &[&str]) -> Bytes {
    let text = |value: &str| AnyValue {
        value: Some(any_value::Value::StringValue(value.into())),
    };
    let resource = |service: &&str| ResourceSpans {
        resource: Some(Resource {
            attributes: { Some(*service) }
                .filter(|service| !service.is_empty())
                .map(|service| KeyValue {
                    key: "service.name".into(),
                    value: Some(text(service)),
                    ..KeyValue::default()
                })
                .into_iter()
                .collect(),
            ..Resource::default()
        }),
        scope_spans: vec![ScopeSpans {
            spans: vec![Span {
                trace_id: vec![7; 16],
                span_id: vec![7; 8],
                name: (*service).into(),
                ..Span::default()
            }],
            ..ScopeSpans::default()
        }],
        ..ResourceSpans::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: services.iter().map(resource).collect(),
    };
    request.encode_to_vec().into()
}

/// The requests of a file with lengths before them.
fn framed(
    path: &std::path::Path,
    decode: impl Fn(&[u8]) -> Vec<u8>,
) -> Vec<ExportTraceServiceRequest> {
    let bytes = std::fs::read(path).expect("a file");
    let mut rest = &bytes[..];
    let mut requests = Vec::new();
    while let Some((len, more)) = rest.split_first_chunk::<4>() {
        let (message, more) = more.split_at(u32::from_be_bytes(*len) as usize);
        requests.push(ExportTraceServiceRequest::decode(&decode(message)[..]).expect("a request"));
        rest = more;
    }
    assert_eq!(rest, b"");
    requests
}

#[tokio::test]
async fn each_service_has_its_file_and_none_leaves_the_folder() {
    let folder = TempFolder::new();
    let path = folder.0.display();
    let exporter = format!(
        "file: {{ path: '{path}/t-*.bin', format: proto, compression: zstd, group_by: {{ enabled: true, resource_attribute: service.name, max_open_files: 1 }} }}"
    );
    let front = sender(&exporter, "file", "", "");
    let client = grpc(&front);
    taken(&client, of_services(&["a", "b", "", "a"])).await;
    taken(&client, of_services(&["../../b", "a"])).await;
    until("all is written", || traces(&front).held() == 0).await;
    let balance = traces(&front);
    // Who says no service is in no file.
    assert_eq!((balance.exported, balance.rejected), (5, 1));
    let plain = |message: &[u8]| zstd::decode_all(message).expect("zstd");
    let names = |name: &str| -> Vec<Vec<String>> {
        let requests = framed(&folder.0.join(name), plain).into_iter();
        let spans = |request: ExportTraceServiceRequest| {
            let resources = request.resource_spans.into_iter();
            resources
                .map(|one| one.scope_spans[0].spans[0].name.clone())
                .collect()
        };
        requests.map(spans).collect()
    };
    assert_eq!(names("t-a.bin"), [vec!["a", "a"], vec!["a"]]);
    assert_eq!(names("t-b.bin"), [["b"]]);
    assert_eq!(names("t-../b.bin"), [["../../b"]]);
}

#[tokio::test]
async fn a_file_is_continued_or_begun_anew() {
    let file = TempFile::new();
    for (append, spans) in [("true", 20), ("true", 40), ("false", 20)] {
        let exporter = format!("file: {{ path: '{}', append: {append} }}", file.0.display());
        let front = sender(&exporter, "file", "", "");
        taken(&grpc(&front), request(0, 10)).await;
        until("it is written", || traces(&front).exported == 20).await;
        front.end().await;
        assert_eq!(file.spans().len(), spans, "{append}");
    }
}
