//! The properties of a value, and how values of several processes are combined (management guide
//! §9.2).

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Origin {
    Metric,
    Status,
    Key,
    Config,
    Product,
}

/// The meaning of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Nature {
    Gauge,
    Limit,
    Max,
    Rate,
    Counter,
    Duration,
    Age,
    Name,
    Output,
    Average,
}

/// The scope of a value: which processes share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Scope {
    Process,
    Service,
}

/// All three properties.
pub type Tags = (Origin, Nature, Scope);

impl Origin {
    /// Its letter in typed lines.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Origin::Metric => 'M',
            Origin::Status => 'S',
            Origin::Key => 'K',
            Origin::Config => 'C',
            Origin::Product => 'P',
        }
    }

    /// Its word in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Origin::Metric => "Metric",
            Origin::Status => "Status",
            Origin::Key => "Key",
            Origin::Config => "Config",
            Origin::Product => "Product",
        }
    }
}

impl Nature {
    /// Its letter in typed lines.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Nature::Gauge => 'G',
            Nature::Limit => 'L',
            Nature::Max => 'M',
            Nature::Rate => 'R',
            Nature::Counter => 'C',
            Nature::Duration => 'D',
            Nature::Age => 'A',
            Nature::Name => 'N',
            Nature::Output => 'O',
            Nature::Average => 'a',
        }
    }

    /// Its word in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Nature::Gauge => "Gauge",
            Nature::Limit => "Limit",
            Nature::Max => "Max",
            Nature::Rate => "Rate",
            Nature::Counter => "Counter",
            Nature::Duration => "Duration",
            Nature::Age => "Age",
            Nature::Name => "Name",
            Nature::Output => "Output",
            Nature::Average => "Avg",
        }
    }
}

impl Scope {
    /// Its letter in typed lines.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Scope::Process => 'P',
            Scope::Service => 'S',
        }
    }

    /// Its word in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Scope::Process => "Process",
            Scope::Service => "Service",
        }
    }
}
