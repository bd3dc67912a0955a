use super::*;
use crate::testing::{Facts, compiler};
use crate::{Compiler, Place};

/// Runs `set-var(name,conditions) expr` as a rule.
fn run(facts: &mut Facts, compiler: &mut Compiler, name: &str, conditions: &[&str], expr: &str) {
    let mut when = SetConditions::default();
    for condition in conditions {
        when.add(condition).expect("a condition");
    }
    let assignment = Assignment {
        var: compiler.var(name).expect("a name"),
        when,
        source: Source::Expr(compiler.expr(&[expr], Place::ALL).expect("an expression").0),
    };
    let change = assignment.eval(&facts.scope(), &mut Vec::new());
    facts.txn.txn_vars.change(assignment.var.slot, change);
}

fn int(facts: &Facts, compiler: &mut Compiler, name: &str) -> Option<i64> {
    let var = compiler.var(name).expect("a name");
    facts.scope().var(var).and_then(Value::into_int)
}

#[test]
fn each_condition_guards_its_variable() {
    for (before, conditions, expr, after) in [
        ("", &["ifexists"][..], "int(2)", None),
        ("int(1)", &["ifexists"], "int(2)", Some(2)),
        ("", &["ifnotexists"], "int(2)", Some(2)),
        ("int(1)", &["ifnotexists"], "int(2)", Some(1)),
        ("unset", &["ifexists"], "int(2)", Some(2)),
        ("unset", &["ifnotexists"], "int(2)", None),
        ("", &["ifset"], "int(2)", None),
        ("unset", &["ifset"], "int(2)", None),
        ("int(1)", &["ifset"], "int(2)", Some(2)),
        ("unset", &["ifnotset"], "int(2)", Some(2)),
        ("int(1)", &["ifnotset"], "int(2)", Some(1)),
        ("int(1)", &["ifempty"], "int(2)", Some(1)),
        ("int(1)", &["ifempty"], "str(2)", Some(1)),
        ("int(1)", &["ifnotempty"], "str()", Some(1)),
        ("int(1)", &["ifnotempty"], "str(2)", Some(2)),
        ("int(1)", &["ifgt"], "int(2)", Some(1)),
        ("int(3)", &["ifgt"], "int(2)", Some(2)),
        ("int(3)", &["iflt"], "int(2)", Some(3)),
        ("int(1)", &["iflt"], "int(2)", Some(2)),
        ("str(1)", &["iflt"], "int(0)", Some(0)),
        ("int(3)", &["ifset", "iflt"], "int(4)", Some(4)),
        ("int(3)", &["ifset", "iflt"], "int(2)", Some(3)),
    ] {
        let (mut facts, mut compiler) = (Facts::new(), compiler());
        match before {
            "" => {}
            "unset" => {
                run(&mut facts, &mut compiler, "txn.a", &[], "int(9)");
                facts.txn.txn_vars.unset(0);
            }
            before => run(&mut facts, &mut compiler, "txn.a", &[], before),
        }
        run(&mut facts, &mut compiler, "txn.a", conditions, expr);
        assert_eq!(
            int(&facts, &mut compiler, "txn.a"),
            after,
            "{before} then {conditions:?} {expr}"
        );
    }
    assert_eq!(
        SetConditions::default().add("ifodd"),
        Err("unknown condition \"ifodd\"".into())
    );
}

#[test]
fn request_variables_end_where_response_variables_begin() {
    let (mut facts, mut compiler) = (Facts::new(), compiler());
    let mut set = |facts: &mut Facts, expr: &str| {
        let (expr, _) = compiler.expr(&[expr], Place::ALL).expect("an expression");
        let found = expr.eval(&facts.scope()).is_some();
        facts.settle();
        found
    };
    assert!(set(&mut facts, "int(1),set-var(req.a)"));
    assert!(!set(&mut facts, "int(1),set-var(res.a)"));
    assert!(set(&mut facts, "var(req.a)"));
    facts.txn.responding = true;
    facts.txn.end_request_vars();
    assert!(!set(&mut facts, "var(req.a)"));
    assert!(!set(&mut facts, "int(1),set-var(req.a)"));
    assert!(set(&mut facts, "int(1),set-var(res.a)"));
    assert!(set(&mut facts, "var(res.a)"));
    assert!(!set(&mut facts, "int(1),set-var(ptxn.a)"));
}

#[test]
fn converters_change_variables_for_what_follows() {
    let (mut facts, mut compiler) = (Facts::new(), compiler());
    for (expr, wanted) in [
        ("int(3),set-var(txn.a),add(txn.a)", "6"),
        ("var(txn.a)", "3"),
        ("int(4),unset-var(txn.a),set-var(txn.b)", "4"),
        ("var(txn.a)", ""),
        ("int(5),set-var(txn.b,ifgt)", ""),
        ("var(txn.b)", "4"),
        ("str(x),set-var(sess.c),concat(-,sess.c,-)", "x-x-"),
        ("dump_all_vars(txn)", "txn.b=4"),
        ("dump_all_vars(,,;)", "sess.c=\"x\";txn.b=4"),
        ("dump_all_vars(sess,d)", ""),
    ] {
        let (compiled, _) = compiler.expr(&[expr], Place::ALL).expect("an expression");
        facts.world.var_names = compiler.var_names();
        let mut out = Vec::new();
        compiled.append_text(&facts.scope(), &mut out);
        facts.settle();
        assert_eq!(String::from_utf8_lossy(&out), wanted, "{expr}");
    }
}

#[test]
fn bytes_are_counted_and_limited() {
    let mut vars = Vars::default();
    vars.set(0, Value::text("hello"));
    assert_eq!(vars.bytes(), VAR_BYTES + 5);
    vars.set(0, Value::Int(1));
    assert_eq!(vars.bytes(), VAR_BYTES);
    vars.set(2, Value::text("x"));
    vars.unset(2);
    assert_eq!(vars.bytes(), 2 * VAR_BYTES);
    vars.clear();
    assert_eq!((vars.bytes(), vars.exists(0)), (0, false));

    let (mut facts, mut compiler) = (Facts::new(), compiler());
    facts.world.var_limits = Some(VarLimits {
        txn: 100,
        ..VarLimits::default()
    });
    run(&mut facts, &mut compiler, "txn.a", &[], "str(1234567890)");
    assert_eq!(int(&facts, &mut compiler, "txn.a"), Some(1_234_567_890));
    run(&mut facts, &mut compiler, "txn.b", &[], "int(1)");
    assert_eq!(int(&facts, &mut compiler, "txn.b"), None);
    run(
        &mut facts,
        &mut compiler,
        "txn.a",
        &[],
        "str(123456789012345678901234567890123456)",
    );
    assert_eq!(facts.txn.txn_vars.bytes(), 100);
    run(
        &mut facts,
        &mut compiler,
        "txn.a",
        &[],
        "str(1234567890123456789012345678901234567)",
    );
    assert_eq!(facts.txn.txn_vars.bytes(), 100);
}
