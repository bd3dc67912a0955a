//! Settings for the master in section `global` (manual §3.1).

use super::global::GlobalBuild;
use super::line::{Line, Parse, leading_integer};

/// `master-worker no-exit-on-failure`
pub fn worker(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(1)?;
    match line.arg(1) {
        "" => Err(line.fault(
            0,
            "support for 'master-worker' was removed in version 3.5. Use -W or -Ws in the startup script instead.",
        )),
        option if build.shared.settings.lacks_master => Err(line.fault(
            0,
            format!(
                "'master-worker {option}' is only supported in master-worker mode. Use -W or -Ws in the startup script."
            ),
        )),
        "no-exit-on-failure" => {
            build.global.master.stays_on_failure = true;
            Ok(())
        }
        _ => Err(line.fault(
            1,
            "'master-worker' only supports 'no-exit-on-failure' option.",
        )),
    }
}

/// `mworker-max-reloads <number>`
pub fn max_reloads(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(1)?;
    line.need(1, || {
        "'mworker-max-reloads' expects an integer argument.".into()
    })?;
    // Parsed like C's `atol`.
    let number = leading_integer(line.arg(1)).parse::<i64>().unwrap_or(0);
    build.global.master.reloads_max = match u32::try_from(number) {
        Ok(number) => number,
        Err(_) if number > 0 => u32::MAX,
        Err(_) => {
            return Err(line.fault(1, "'mworker-max-reloads' expects a positive value or zero."));
        }
    };
    Ok(())
}
