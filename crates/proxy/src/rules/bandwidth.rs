//! `set-bandwidth-limit` (manual §4.4, §9.7).

use config::model::{
    Amount, BandwidthLimit, BandwidthRate, BandwidthSwitch, Direction, FilterPlace,
};

use super::{Cx, tables};
use crate::ids::ProxyId;
use crate::stream::{FULL, Limit, Stream, rate_of};

impl Cx<'_> {
    /// Enables a limit of the rule's proxy for a stream. A limit whose key has no value stays
    /// disabled.
    pub(super) fn set_bandwidth_limit(
        &mut self,
        stream: &mut Stream,
        proxy: ProxyId,
        switch: &BandwidthSwitch,
    ) {
        let limits = &self.eval().runtime_config.proxy(proxy).bandwidth_limits;
        let Some(filter) = limits.get(switch.limit) else {
            return;
        };
        if filter.place == FilterPlace::LeftOut {
            return;
        }
        let (bytes, period_ms, shared) = match &filter.rate {
            BandwidthRate::Stream { bytes, period_ms } => (
                self.amount(stream, switch.bytes.as_ref(), *bytes),
                self.amount(stream, switch.period_ms.as_ref(), *period_ms),
                None,
            ),
            BandwidthRate::Shared { bytes, key, table } => {
                let now = self.eval().now;
                let held = self.eval().with_scope(stream, true, |scope| {
                    tables::hold(key.eval(scope)?, table, now)
                });
                let Some(held) = held else { return };
                let definition = table.definition();
                let column = definition.column(rate_of(filter.direction));
                let period_ms = column.map_or(1, |column| column.period_ms.max(1));
                (*bytes, period_ms, Some(held))
            }
        };
        let is_last = self.follows_compression(stream, proxy, filter);
        let filters = stream.channel_mut(filter.direction).filters_mut();
        let limits = if is_last {
            &mut filters.output_limits
        } else {
            &mut filters.limits
        };
        limits.turn_on(Limit {
            of: (proxy, switch.limit),
            direction: filter.direction,
            min_bytes: filter.min_bytes.into(),
            bytes: bytes.into(),
            period_ms: period_ms.into(),
            shared,
            emptied_us: FULL,
        });
    }

    /// Whether a limit gets compressed payload. The filters of the frontend come before those of
    /// the backend, and the first compression of the two is the one that compresses.
    fn follows_compression(
        &self,
        stream: &Stream,
        proxy: ProxyId,
        filter: &BandwidthLimit,
    ) -> bool {
        if proxy == stream.frontend {
            return filter.place == FilterPlace::AfterCompression;
        }
        let frontend = self.eval().runtime_config.proxy(stream.frontend);
        let of_frontend = frontend.compression.as_deref();
        let of_frontend = of_frontend.map(|compression| match filter.direction {
            Direction::Up => &compression.requests,
            Direction::Down => &compression.responses,
        });
        of_frontend.is_some_and(|which| !which.is_left_out)
            || filter.place == FilterPlace::AfterCompression
    }

    /// The value of the rule, or the filter's value if the rule has none or 0.
    fn amount(&mut self, stream: &mut Stream, given: Option<&Amount>, default: u32) -> u32 {
        let amount = match given {
            None => None,
            Some(Amount::Fixed(amount)) => Some(*amount),
            Some(Amount::Expr(expr)) => {
                let value = self.eval().int(stream, expr);
                value.and_then(|value| u32::try_from(value).ok())
            }
        };
        amount.filter(|amount| *amount > 0).unwrap_or(default)
    }
}
