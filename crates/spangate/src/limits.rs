//! The limits of the process: file descriptors, and the connections that they allow.

use config::model::Config;

use crate::{sys, warning};

/// Most descriptors that are requested without `fd-hard-limit`, `ulimit-n` and `maxconn`, as in
/// HAProxy.
const DESCRIPTORS_MAX_DEFAULT: u64 = 1 << 20;

/// Raises the limit of file descriptors to `ulimit-n`, or as far as the system allows. Returns the
/// limit that holds now.
///
/// # Errors
/// `ulimit-n` cannot be had, and limits are strict.
pub(crate) fn raise_descriptors(config: &Config) -> Result<u64, String> {
    let global = &config.global;
    let most = global.fd_hard_limit;
    let Some(wanted) = global.ulimit_n else {
        let most = most.unwrap_or(DESCRIPTORS_MAX_DEFAULT);
        return Ok(sys::limit_descriptors(None, most));
    };
    let limit = sys::limit_descriptors(Some(wanted), most.unwrap_or(u64::MAX));
    if limit < wanted {
        short(config, wanted, limit)?;
    }
    Ok(limit)
}

/// Sets `maxconn`, and returns the limit of server connections. `descriptors` is the current limit,
/// `reserved` the number of those that are no connections.
///
/// Without `maxconn`: as many connections as the descriptors allow. A connection takes two
/// descriptors where there are servers.
///
/// # Errors
/// `maxconn` needs more descriptors than can be had, and limits are strict.
pub(crate) fn set_maxconn(
    config: &mut Config,
    descriptors: &mut u64,
    reserved: u64,
) -> Result<Option<u32>, String> {
    let has_servers = config.proxies.iter().any(|proxy| !proxy.servers.is_empty());
    let sides = if has_servers { 2 } else { 1 };
    let clients = match config.global.maxconn {
        Some(maxconn) => {
            let needed = u64::from(maxconn) * sides + reserved;
            if needed > *descriptors && config.global.ulimit_n.is_none() {
                let most = config.global.fd_hard_limit.unwrap_or(u64::MAX);
                *descriptors = sys::limit_descriptors(Some(needed), most);
            }
            if needed > *descriptors {
                short(config, needed, *descriptors)?;
            }
            u64::from(maxconn)
        }
        None => {
            let fits = (descriptors.saturating_sub(reserved) / sides).max(1);
            let fits = u32::try_from(fits).unwrap_or(u32::MAX);
            config.global.maxconn = Some(fits);
            u64::from(fits)
        }
    };
    let left = descriptors.saturating_sub(reserved).saturating_sub(clients);
    Ok(Some(u32::try_from(left).unwrap_or(u32::MAX).max(1)))
}

/// There are fewer descriptors than the configuration asks for: an error, or with `no
/// strict-limits` a warning.
fn short(config: &Config, wanted: u64, limit: u64) -> Result<(), String> {
    let hard = sys::hard_limit_of_descriptors();
    let message = format!(
        "Cannot raise FD limit to {wanted}, current limit is {limit} and hard limit is {hard}. Remove 'maxconn' and \
         'ulimit-n' from the global section to use what the limit allows, or raise the limit of the system."
    );
    if config.global.tolerates_low_limits {
        warning(&message);
        Ok(())
    } else {
        Err(message)
    }
}
