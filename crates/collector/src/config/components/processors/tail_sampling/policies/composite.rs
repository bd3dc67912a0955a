//! `composite`: the first policy that matches owns the trace, and each has a share of a rate.

use super::{
    Block, COUNT_MAX, Kind, PolicyKind, SUB_OR_AND, Section, Type, opt, policies, required,
};

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("composite", Kind::Section(&[&[
        opt("max_total_spans_per_second", Kind::Int(0, COUNT_MAX), "0", "spans a second of all its policies together"),
        opt("policy_order", Kind::Texts, "", "names of its policies; the order of `composite_sub_policy` counts"),
        opt("composite_sub_policy", Kind::Sections(SUB_OR_AND), "", "policies: the first that matches owns the trace"),
        opt("rate_allocation", Kind::Sections(&[&[
            required("policy", Kind::Text, "name of one of its policies"),
            opt("percent", Kind::Int(0, 100), "0", "its share of the total"),
        ]]), "", "shares of the total; all the same where none is written"),
    ]]), "", "options of type composite"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    let policies = policies(options, "composite_sub_policy", "it keeps no trace");
    let names: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
    let order = options.texts("policy_order");
    for name in order.iter().filter(|name| !names.contains(&name.as_str())) {
        let message = format!("'{name}' is none of its policies");
        options.warn("policy_order", &message);
    }
    // Names that are there in another order than the policies are.
    let known: Vec<&str> = order
        .iter()
        .map(String::as_str)
        .filter(|name| names.contains(name))
        .collect();
    let mut sorted = known.clone();
    sorted.sort_by_key(|name| names.iter().position(|other| other == name));
    if known != sorted {
        let message =
            "has no effect: the order of 'composite_sub_policy' counts, and it is another one";
        options.warn("policy_order", message);
    }
    let rates = options.sections("rate_allocation");
    let rates = rates.iter().map(|rate| {
        let (name, percent): (String, u64) = (rate.text("policy"), rate.int("percent"));
        if !names.contains(&name.as_str()) {
            rate.warn("policy", &format!("'{name}' is none of its policies"));
        }
        (name, percent)
    });
    let rates: Vec<(String, u64)> = rates.collect();
    if rates.iter().map(|(_, percent)| percent).sum::<u64>() > 100 {
        options.warn("rate_allocation", "shares more than 100 per cent");
    }
    let spans_per_second_max: u64 = options.int("max_total_spans_per_second");
    if spans_per_second_max == 0 {
        options.warn("max_total_spans_per_second", "is 0: no trace is kept");
    }
    Some(PolicyKind::Composite {
        spans_per_second_max,
        policies,
        rates,
    })
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::Composite {
        spans_per_second_max,
        policies,
        rates,
    } = kind
    {
        block.put("max_total_spans_per_second", spans_per_second_max);
        block.subs("composite_sub_policy", policies);
        block.rates(rates);
    }
}
