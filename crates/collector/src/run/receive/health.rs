//! gRPC's own health service, `grpc.health.v1.Health`: whether the collector, or a pipeline,
//! serves.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use export::rpc::Status;
use hyper::body::{Frame, Incoming};
use hyper::{Request, Response};
use otlp::wire::one_bytes;
use tokio::sync::{mpsc, watch};

use super::Intake;
use super::grpc;
use super::http::Reply;
use super::listen::Stage;
use super::status::{Fault, code};

/// Time between two looks for those who watch.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Tells whether a service serves; none: there is no such service. The empty name is the
/// collector's, others are pipelines'.
pub type Probe = dyn Fn(&str) -> Option<bool> + Send + Sync;

/// `HealthCheckRequest.service`
const SERVICE: u32 = 1 << 3 | 2;

/// `HealthCheckResponse.ServingStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Serving {
    Yes = 1,
    No = 2,
    Unknown = 3,
}

impl Serving {
    fn of(probe: &Probe, service: &str) -> Serving {
        match probe(service) {
            Some(true) => Serving::Yes,
            Some(false) => Serving::No,
            None => Serving::Unknown,
        }
    }

    /// `HealthCheckResponse`, behind its prefix.
    fn message(self) -> Bytes {
        // A field of number 1 and of the kind of numbers.
        Bytes::copy_from_slice(&[0, 0, 0, 0, 2, 0x08, self as u8])
    }
}

/// Answers a call. Those who watch are told what changes as long as the socket is open.
pub(super) async fn serve(
    intake: &Arc<Intake>,
    probe: &Arc<Probe>,
    request: Request<Incoming>,
    message_bytes_max: u64,
    stages: watch::Receiver<Stage>,
) -> Response<Reply> {
    let path = request.uri().path();
    let is_watch = match path {
        "/grpc.health.v1.Health/Check" => false,
        "/grpc.health.v1.Health/Watch" => true,
        _ => return grpc::refuse(&Fault::NotThere(format!("{path} is not served"))),
    };
    let service = match service(intake, request, message_bytes_max).await {
        Ok(service) => service,
        Err(fault) => return grpc::refuse(&fault),
    };
    if is_watch {
        let (tell, told) = mpsc::channel(1);
        tokio::spawn(watch(Arc::clone(probe), service, tell, stages));
        return grpc::response(Reply::stream(told));
    }
    match Serving::of(&**probe, &service) {
        Serving::Unknown => grpc::failed(&status(code::NOT_FOUND, "Service not found.")),
        serving => grpc::ok(serving.message()),
    }
}

async fn service(
    intake: &Arc<Intake>,
    request: Request<Incoming>,
    bytes_max: u64,
) -> Result<String, Fault> {
    let coding = grpc::coding(request.headers())?;
    let whole = grpc::message(intake, coding, request.into_body(), bytes_max).await?;
    let service = one_bytes(&whole.bytes, SERVICE);
    let service = service.map_err(|fault| Fault::Invalid(fault.to_string()))?;
    let service = String::from_utf8(service.unwrap_or_default().to_vec());
    service.map_err(|_| Fault::Invalid("the name of the service is not UTF-8".into()))
}

/// Tells what a service does, and what it does then; ends when nobody listens, and at the end.
async fn watch(
    probe: Arc<Probe>,
    service: String,
    tell: mpsc::Sender<Frame<Bytes>>,
    mut stages: watch::Receiver<Stage>,
) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut last = None;
    loop {
        tokio::select! {
            _ = looks.tick() => {}
            () = tell.closed() => return,
            _ = stages.wait_for(|stage| *stage != Stage::Open) => break,
        }
        let now = Serving::of(&*probe, &service);
        if last.replace(now) != Some(now) && tell.send(Frame::data(now.message())).await.is_err() {
            return;
        }
    }
    let status = status(code::CANCELLED, "Server shutting down.");
    // Who has gone meanwhile need not hear of it.
    let _ = tell.send(Frame::trailers(grpc::trailers(&status))).await;
}

fn status(code: i32, message: &str) -> Status {
    Status {
        code,
        message: message.to_owned(),
        retry_after: None,
    }
}
