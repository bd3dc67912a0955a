//! The task of a table.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tables::{ShareLog, Table};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::wire::{Wire, nonsense};
use super::{Command, LAST_CHANGES_WAIT, Setup};
use crate::exchange::Exchange;
use crate::view::TableView;

/// How long a store may take to accept a connection and to load the script.
const CONNECT_TIME: Duration = Duration::from_secs(2);
/// How long a store may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// The pause after the first failure, milliseconds; each further one doubles it.
const PAUSE_MS_MIN: u64 = 100;
/// The longest pause, milliseconds.
const PAUSE_MS_MAX: u64 = 3200;

/// Runs all tables until the end of the thread.
pub(super) async fn run(setup: Setup, mut commands: UnboundedReceiver<Command>) {
    let setup = Rc::new(setup);
    let mut running: Vec<Running> = Vec::new();
    follow(&mut running, &setup.tables, &setup);
    loop {
        match commands.recv().await {
            Some(Command::View(sender)) => {
                let views = running.iter().map(|one| one.state.view());
                // The caller may have given up.
                let _ = sender.send(views.collect());
            }
            Some(Command::Tables(tables)) => follow(&mut running, &tables, &setup),
            Some(Command::Stop) | None => break,
        }
    }
    let ends = running.into_iter().map(|one| {
        one.state.stop();
        one.task
    });
    let ends: Vec<JoinHandle<()>> = ends.collect();
    for task in ends {
        // The error of a task that has failed: the task cannot send its changes.
        let _ = task.await;
    }
}

/// A table that is shared.
struct Running {
    state: Rc<State>,
    task: JoinHandle<()>,
}

/// Starts the tasks of new tables, and ends those of tables that are gone.
fn follow(running: &mut Vec<Running>, tables: &[Arc<Table>], setup: &Rc<Setup>) {
    running.retain(|one| {
        let stays = tables
            .iter()
            .any(|table| Arc::ptr_eq(table, &one.state.table));
        if !stays {
            one.state.stop();
        }
        stays
    });
    for table in tables {
        if running
            .iter()
            .any(|one| Arc::ptr_eq(table, &one.state.table))
        {
            continue;
        }
        if let Some(state) = State::new(table, setup) {
            let state = Rc::new(state);
            let task = tokio::task::spawn_local(serve(Rc::clone(&state)));
            running.push(Running { state, task });
        }
    }
}

struct State {
    table: Arc<Table>,
    exchange: RefCell<Exchange>,
    setup: Rc<Setup>,
    /// An entry was touched.
    touched: Arc<Notify>,
    stopping: Notify,
    connection: RefCell<Connection>,
}

/// What is known of the connection.
#[derive(Default)]
struct Connection {
    is_open: bool,
    last_error: String,
    /// It was told that the store is lost, and not yet that it answers again.
    is_told: bool,
}

impl State {
    fn new(table: &Arc<Table>, setup: &Rc<Setup>) -> Option<State> {
        table.definition().share()?;
        let touched = Arc::new(Notify::new());
        let wake = Arc::clone(&touched);
        let log = ShareLog::open(Arc::clone(table), move || wake.notify_one())?;
        Some(State {
            table: Arc::clone(table),
            exchange: RefCell::new(Exchange::new(log, setup.random)?),
            setup: Rc::clone(setup),
            touched,
            stopping: Notify::new(),
            connection: RefCell::default(),
        })
    }

    fn stop(&self) {
        self.stopping.notify_one();
    }

    fn every_ms(&self) -> u64 {
        let share = self.table.definition().share();
        share.map_or(0, |share| share.every_ms.into())
    }

    fn view(&self) -> TableView {
        let exchange = self.exchange.borrow();
        let connection = self.connection.borrow();
        let definition = self.table.definition();
        let share = definition.share();
        let now_ms = (self.setup.clock)();
        TableView {
            table: definition.name.clone(),
            store: share.map_or_else(String::new, |share| share.store.address.to_string()),
            is_connected: connection.is_open,
            last_error: connection.last_error.clone(),
            last_refusal: exchange.refused().to_owned(),
            every_ms: share.map_or(0, |share| share.every_ms),
            answered_ago_ms: exchange.answered_ms().map(|at| now_ms.saturating_sub(at)),
            answer_ms: exchange.answer_ms(),
            waiting: exchange.waiting() as u64,
            watched: exchange.watched() as u64,
            counters: exchange.counters(),
        }
    }

    /// The names of the table and of its store.
    fn names(&self) -> (&str, String) {
        let definition = self.table.definition();
        let store = definition
            .share()
            .map(|share| share.store.address.to_string());
        (&definition.name, store.unwrap_or_default())
    }

    /// A round is over.
    fn answered(&self) {
        let mut connection = self.connection.borrow_mut();
        if std::mem::take(&mut connection.is_told) {
            let (table, store) = self.names();
            (self.setup.tell)(&format!("Table {table} : the store {store} answers again."));
        }
    }

    fn failed(&self, error: String) {
        let mut connection = self.connection.borrow_mut();
        connection.is_open = false;
        if !std::mem::replace(&mut connection.is_told, true) {
            let (table, store) = self.names();
            (self.setup.tell)(&format!(
                "Table {table} : the store {store} is lost ({error}) ; this process counts alone."
            ));
        }
        connection.last_error = error;
        self.exchange.borrow_mut().failed();
    }
}

/// Exchanges until the task is to stop, then sends the last changes.
async fn serve(state: Rc<State>) {
    let mut wire = None;
    tokio::select! {
        () = state.stopping.notified() => {}
        () = exchange(&state, &mut wire) => {}
    }
    // A request without its answer leaves the connection unusable.
    let _ = timeout(LAST_CHANGES_WAIT, async {
        let mut wire = open(&state).await?;
        round(&state, &mut wire).await
    })
    .await;
}

/// Exchanges for ever.
async fn exchange(state: &State, wire: &mut Option<Wire>) {
    let mut pause_ms = PAUSE_MS_MIN;
    loop {
        let failed = run_connection(state, wire, &mut pause_ms).await;
        *wire = None;
        state.failed(failed);
        // Not all proxies at the same time.
        let jitter_ms = (state.setup.random)() % (pause_ms / 2 + 1);
        tokio::time::sleep(Duration::from_millis(pause_ms / 2 + jitter_ms)).await;
        pause_ms = (pause_ms * 2).min(PAUSE_MS_MAX);
    }
}

/// Exchanges over one connection until it fails. Returns the reason.
async fn run_connection(state: &State, place: &mut Option<Wire>, pause_ms: &mut u64) -> String {
    let wire = match open(state).await {
        Ok(wire) => place.insert(wire),
        Err(error) => return error,
    };
    loop {
        if let Err(error) = round(state, wire).await {
            return error;
        }
        *pause_ms = PAUSE_MS_MIN;
        state.answered();
        wait(state).await;
    }
}

async fn open(state: &State) -> Result<Wire, String> {
    let share = state.table.definition().share().ok_or_else(nonsense)?;
    let opened = timeout(CONNECT_TIME, Wire::open(share)).await;
    let wire = opened.map_err(|_| "the store does not answer".to_owned())??;
    state.exchange.borrow_mut().connected();
    state.connection.borrow_mut().is_open = true;
    Ok(wire)
}

/// Tells the store of all entries that were touched.
async fn round(state: &State, wire: &mut Wire) -> Result<(), String> {
    state.exchange.borrow_mut().begin_round();
    loop {
        let command = {
            let mut exchange = state.exchange.borrow_mut();
            let Some(request) = exchange.request((state.setup.clock)()) else {
                return Ok(());
            };
            request.command(&wire.sha)
        };
        let answer = timeout(ANSWER_TIME, wire.ask(&command)).await;
        let value = answer.map_err(|_| "the store does not answer".to_owned())??;
        let mut exchange = state.exchange.borrow_mut();
        let taken = exchange.answered(value, (state.setup.clock)());
        taken.map_err(|_| nonsense())?;
    }
}

/// Waits for the next round: a period, and longer while there is nothing to do.
async fn wait(state: &State) {
    let sleeps = state.exchange.borrow().log().sleep();
    if sleeps {
        let due_ms = state.exchange.borrow().due_ms();
        let left_ms = due_ms.saturating_sub((state.setup.clock)());
        let left_ms = left_ms.max(state.every_ms());
        tokio::select! {
            () = state.touched.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(left_ms)) => return,
        }
    }
    tokio::time::sleep(Duration::from_millis(state.every_ms())).await;
}
