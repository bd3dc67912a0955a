//! The question for a name's addresses of both families.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::name::Name;
use crate::records::Records;
use crate::resolver::Status;
use crate::run::{Handle, QuestionId};
use crate::section::Family;

/// The index of the only section.
const SECTION: usize = 0;

/// How long the other family's addresses are awaited once one family has some: there are
/// nameservers that never answer questions for IPv6.
const OTHER_FAMILY_MAX: Duration = Duration::from_secs(2);

/// The addresses of a name; families that have none, or not in time, are left out.
///
/// # Errors
/// Neither family has addresses: the more severe of both reasons.
pub(super) async fn both_families(handle: &Handle, name: &Name) -> Result<Vec<IpAddr>, Status> {
    let mut v6 = Question::ask(handle, name, Family::V6);
    let mut v4 = Question::ask(handle, name, Family::V4);
    let (first, other) = tokio::select! {
        found = &mut v6 => (found, v4),
        found = &mut v4 => (found, v6),
    };
    let second = if first.is_ok() {
        let other = tokio::time::timeout(OTHER_FAMILY_MAX, other).await;
        other.unwrap_or(Err(Status::Timeout))
    } else {
        other.await
    };
    match (first, second) {
        (Ok(one), Ok(other)) => Ok([&one.addresses[..], &other.addresses].concat()),
        (Ok(found), Err(_)) | (Err(_), Ok(found)) => Ok(found.addresses.clone()),
        (Err(one), Err(other)) if severity(one) > severity(other) => Err(one),
        (Err(_), Err(other)) => Err(other),
    }
}

/// Which of two errors counts: negative answers say less than failures.
pub(super) fn severity(status: Status) -> u8 {
    match status {
        Status::Nx => 1,
        Status::NoData => 2,
        Status::Other => 3,
        Status::Invalid => 4,
        Status::Refused => 5,
        Status::Timeout => 6,
    }
}

/// A question under way. Dropped, it is given up.
struct Question {
    handle: Handle,
    id: QuestionId,
    answer: oneshot::Receiver<Result<Arc<Records>, Status>>,
}

impl Question {
    fn ask(handle: &Handle, name: &Name, family: Family) -> Question {
        let (sender, answer) = oneshot::channel();
        let id = handle.look_up(SECTION, name.clone(), family, move |found| {
            // The question may have been given up at this moment.
            let _ = sender.send(found);
        });
        Question {
            handle: handle.clone(),
            id,
            answer,
        }
    }
}

impl Future for Question {
    type Output = Result<Arc<Records>, Status>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.answer).poll(context);
        // Without a sender, the thread has ended.
        answer.map(|found| found.unwrap_or(Err(Status::Other)))
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        // After its answer this has no effect.
        self.handle.cancel(self.id);
    }
}
