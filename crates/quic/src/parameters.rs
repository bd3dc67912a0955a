//! Transport parameters (RFC 9000 §18), for operators. The library has its own reader, which shows
//! nothing.

/// The transport parameters of one side. Those that were not sent have their default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// original_destination_connection_id
    pub original_id: Option<Vec<u8>>,
    /// initial_source_connection_id
    pub initial_id: Option<Vec<u8>>,
    /// retry_source_connection_id
    pub retry_id: Option<Vec<u8>>,
    /// max_idle_timeout, milliseconds
    pub idle_ms: u64,
    /// max_udp_payload_size
    pub payload_bytes: u64,
    /// ack_delay_exponent
    pub ack_delay_exponent: u64,
    /// max_ack_delay, milliseconds
    pub ack_delay_ms: u64,
    /// active_connection_id_limit
    pub ids_max: u64,
    /// initial_max_data
    pub data_bytes: u64,
    /// initial_max_stream_data_bidi_local
    pub bidi_local_bytes: u64,
    /// initial_max_stream_data_bidi_remote
    pub bidi_remote_bytes: u64,
    /// initial_max_stream_data_uni
    pub uni_bytes: u64,
    /// initial_max_streams_bidi
    pub bidi_streams: u64,
    /// initial_max_streams_uni
    pub uni_streams: u64,
    /// disable_active_migration
    pub stays: bool,
    /// A stateless_reset_token was sent.
    pub has_reset_token: bool,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            original_id: None,
            initial_id: None,
            retry_id: None,
            idle_ms: 0,
            payload_bytes: 65_527,
            ack_delay_exponent: 3,
            ack_delay_ms: 25,
            ids_max: 2,
            data_bytes: 0,
            bidi_local_bytes: 0,
            bidi_remote_bytes: 0,
            uni_bytes: 0,
            bidi_streams: 0,
            uni_streams: 0,
            stays: false,
            has_reset_token: false,
        }
    }
}

impl Parameters {
    /// Decodes transport parameters (RFC 9000 §18). Stops at one that is cut off, and ignores unknown
    /// ones.
    #[must_use]
    pub fn read(mut bytes: &[u8]) -> Parameters {
        let mut parameters = Parameters::default();
        while let Some((id, value)) = next(&mut bytes) {
            parameters.set(id, value);
        }
        parameters
    }

    /// RFC 9000 §18.2.
    fn set(&mut self, id: u64, value: &[u8]) {
        let number = match id {
            0x00 => return self.original_id = Some(value.to_vec()),
            0x02 => return self.has_reset_token = true,
            0x0c => return self.stays = true,
            0x0f => return self.initial_id = Some(value.to_vec()),
            0x10 => return self.retry_id = Some(value.to_vec()),
            0x01 => &mut self.idle_ms,
            0x03 => &mut self.payload_bytes,
            0x04 => &mut self.data_bytes,
            0x05 => &mut self.bidi_local_bytes,
            0x06 => &mut self.bidi_remote_bytes,
            0x07 => &mut self.uni_bytes,
            0x08 => &mut self.bidi_streams,
            0x09 => &mut self.uni_streams,
            0x0a => &mut self.ack_delay_exponent,
            0x0b => &mut self.ack_delay_ms,
            0x0e => &mut self.ids_max,
            _ => return,
        };
        if let Some(value) = varint(&mut { value }) {
            *number = value;
        }
    }
}

/// The next parameter, which is whole.
fn next<'a>(bytes: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let id = varint(bytes)?;
    let len = usize::try_from(varint(bytes)?).ok()?;
    let (value, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some((id, value))
}

/// A number (RFC 9000 §16).
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    *bytes = rest;
    let number = number
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    // The first two bits are the length.
    let bits = 8 * (1 << (first >> 6)) - 2;
    Some(number & ((1 << bits) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_lengths() {
        // RFC 9000 §A.1.
        for (bytes, number) in [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(varint(&mut { bytes }), Some(number));
            assert_eq!(varint(&mut &bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn parameters_are_read_as_far_as_they_are_whole() {
        let bytes = b"\x01\x02\x47\xd0\x0f\x03abc\x0c\0\x40\x99\x02xy\x04\x01\x07\x02\x10";
        let wanted = Parameters {
            idle_ms: 2_000,
            initial_id: Some(b"abc".to_vec()),
            stays: true,
            data_bytes: 7,
            ..Parameters::default()
        };
        assert_eq!(Parameters::read(bytes), wanted);
        for len in 0..bytes.len() {
            let _ = Parameters::read(&bytes[..len]);
        }
        assert_eq!(Parameters::read(b""), Parameters::default());
    }
}
