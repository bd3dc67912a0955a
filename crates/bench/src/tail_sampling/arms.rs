//! The ways to sample whole traces: in one step, or after grouping.

use crate::Failure;
use crate::peers::fill;

/// A way, as processors of a collector.
#[derive(Debug)]
pub struct Arm {
    /// Its name in tables and options.
    pub name: &'static str,
    /// Its processors in the pipeline.
    pub chain: &'static str,
    /// Their sections; `{{wait}}`, `{{storage}}` and `{{policies}}` are placeholders.
    sections: &'static str,
}

/// The name of the arm that every collector supports.
pub const TAIL: &str = "tail";

/// Every arm.
pub const ARMS: &[Arm] = &[
    Arm {
        name: TAIL,
        chain: "tail_sampling",
        sections: include_str!("../../templates/tail.yaml"),
    },
    Arm {
        name: "grouping",
        chain: "groupbytrace, policysampling",
        sections: include_str!("../../templates/grouping.yaml"),
    },
];

/// The policies of all arms.
const POLICIES: &str = include_str!("../../templates/policies.yaml");

impl Arm {
    /// The sections of its processors. `storage` is a line of a section, or empty.
    pub fn processors(&self, wait_s: u32, storage: &str) -> String {
        let values: [(&str, &dyn std::fmt::Display); 3] = [
            ("wait", &wait_s),
            ("storage", &storage),
            ("policies", &POLICIES),
        ];
        fill(self.sections, &values)
    }
}

/// The arms in a list of names, in the table's order.
///
/// # Errors
/// There is no such arm.
pub fn select(list: &str) -> Result<Vec<&'static Arm>, Failure> {
    let wanted: Vec<&str> = list.split(',').map(str::trim).collect();
    if let Some(unknown) = wanted
        .iter()
        .find(|name| ARMS.iter().all(|arm| arm.name != **name))
    {
        return Err(format!("unknown arm '{unknown}'").into());
    }
    Ok(ARMS
        .iter()
        .filter(|arm| wanted.contains(&arm.name))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_are_filled_whole_and_have_the_same_policies() {
        for arm in ARMS {
            let text = arm.processors(7, "");
            assert!(
                !text.contains("{{") && text.contains("7s") && text.contains(POLICIES),
                "{text}"
            );
            for processor in arm.chain.split(", ") {
                assert!(text.contains(&format!("  {processor}:\n")), "{text}");
            }
        }
    }
}
