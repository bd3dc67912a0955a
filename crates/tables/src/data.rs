//! The data types that an entry can store (manual §11.1, "store"): one row per data type.

/// How a data type is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A signed 32-bit number.
    Signed,
    /// A 32-bit number.
    Count,
    /// A 64-bit number.
    Total,
    /// Events over a period.
    Rate,
    /// The name of a server.
    Name,
}

impl Shape {
    /// The number of 32-bit cells of one value.
    #[must_use]
    pub const fn cells(self) -> usize {
        match self {
            Shape::Signed | Shape::Count | Shape::Name => 1,
            Shape::Total => 2,
            Shape::Rate => 3,
        }
    }
}

/// The last argument of a data type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Nothing.
    None,
    /// The period of a rate.
    Period,
}

struct Row {
    data: Data,
    name: &'static str,
    shape: Shape,
    is_array: bool,
}

/// One row: the variant, its name in the configuration, its shape, and whether it is an array.
macro_rules! data {
    ($($variant:ident $name:literal $shape:ident $array:literal;)*) => {
        /// A data type; the order is that of listings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Data {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }
        const ROWS: &[Row] = &[$(Row { data: Data::$variant, name: $name, shape: Shape::$shape, is_array: $array },)*];
    };
}

data! {
    ServerId "server_id" Signed false;
    Gpt0 "gpt0" Count false;
    Gpc0 "gpc0" Count false;
    Gpc0Rate "gpc0_rate" Rate false;
    ConnCnt "conn_cnt" Count false;
    ConnRate "conn_rate" Rate false;
    ConnCur "conn_cur" Count false;
    SessCnt "sess_cnt" Count false;
    SessRate "sess_rate" Rate false;
    HttpReqCnt "http_req_cnt" Count false;
    HttpReqRate "http_req_rate" Rate false;
    HttpErrCnt "http_err_cnt" Count false;
    HttpErrRate "http_err_rate" Rate false;
    BytesInCnt "bytes_in_cnt" Total false;
    BytesInRate "bytes_in_rate" Rate false;
    BytesOutCnt "bytes_out_cnt" Total false;
    BytesOutRate "bytes_out_rate" Rate false;
    Gpc1 "gpc1" Count false;
    Gpc1Rate "gpc1_rate" Rate false;
    ServerKey "server_key" Name false;
    HttpFailCnt "http_fail_cnt" Count false;
    HttpFailRate "http_fail_rate" Rate false;
    Gpt "gpt" Count true;
    Gpc "gpc" Count true;
    GpcRate "gpc_rate" Rate true;
    GlitchCnt "glitch_cnt" Count false;
    GlitchRate "glitch_rate" Rate false;
}

impl Data {
    /// The number of data types.
    pub const COUNT: usize = ROWS.len();

    /// The data type with this number, `data as u8`, for constants.
    ///
    /// # Panics
    /// There is no such data type.
    #[must_use]
    pub const fn numbered(number: u8) -> Data {
        ROWS[number as usize].data
    }

    /// The array element that replaces this data type in tables that store the array (`gpc0` is
    /// `gpc[0]`).
    #[must_use]
    pub const fn in_array(self) -> Option<(Data, u32)> {
        match self {
            Data::Gpt0 => Some((Data::Gpt, 0)),
            Data::Gpc0 => Some((Data::Gpc, 0)),
            Data::Gpc1 => Some((Data::Gpc, 1)),
            Data::Gpc0Rate => Some((Data::GpcRate, 0)),
            Data::Gpc1Rate => Some((Data::GpcRate, 1)),
            _ => None,
        }
    }

    /// All data types, in the order of listings.
    pub fn all() -> impl ExactSizeIterator<Item = Data> {
        ROWS.iter().map(|row| row.data)
    }

    /// The data type with this name in the configuration; `server_name` is the old name of
    /// `server_key`.
    #[must_use]
    pub fn named(name: &str) -> Option<Data> {
        let name = if name == "server_name" {
            "server_key"
        } else {
            name
        };
        ROWS.iter().find(|row| row.name == name).map(|row| row.data)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// How it is stored.
    #[must_use]
    pub fn shape(self) -> Shape {
        self.row().shape
    }

    /// Whether it is an array, whose first argument is its length.
    #[must_use]
    pub fn is_array(self) -> bool {
        self.row().is_array
    }

    /// Its last argument.
    #[must_use]
    pub fn argument(self) -> Argument {
        match self.shape() {
            Shape::Rate => Argument::Period,
            Shape::Signed | Shape::Count | Shape::Total | Shape::Name => Argument::None,
        }
    }

    /// Whether a value describes only the process that wrote it, so that it is not learned from
    /// peers (manual §11.2).
    #[must_use]
    pub fn is_local(self) -> bool {
        self == Data::ConnCur
    }

    /// Whether `write-to` copies it: a value that stands for itself, and does not add up.
    #[must_use]
    pub fn is_copied(self) -> bool {
        matches!(
            self,
            Data::ServerId | Data::ServerKey | Data::Gpt0 | Data::Gpt
        )
    }

    /// Whether its rate counts units of `brates-factor` bytes.
    pub(crate) fn counts_bytes(self) -> bool {
        matches!(self, Data::BytesInRate | Data::BytesOutRate)
    }

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }
}
