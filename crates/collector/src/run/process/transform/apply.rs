//! Editors: which message a statement changes, and what it becomes.

use ottl::{Edit, Failure, Form, Message, Path, Subject, Term, Value, texts};

use super::{list, map, metric, scalar, span_name};

/// The effect of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Nothing changed.
    Nothing,
    /// This message is another one.
    Changed(Message),
    /// There is one more metric.
    Added,
}

/// Carries an edit out. The new bytes of the message that it changes, or of a metric that it adds,
/// are appended to `out`. `metric` is the metric of a data point, with all of its data points.
///
/// # Errors
/// It cannot be done with these values.
pub fn apply(
    edit: &Edit,
    subject: &Subject<'_, '_, '_>,
    metric: &[u8],
    out: &mut Vec<u8>,
) -> Result<Applied, Failure> {
    match edit {
        Edit::Metric(edit) => return metric::apply(edit, subject, metric, out),
        Edit::SpanName { original } => {
            return span_name::apply(subject.span, original.as_deref(), out);
        }
        _ => {}
    }
    let changed = change(edit, subject, out)?;
    Ok(changed.map_or(Applied::Nothing, Applied::Changed))
}

/// The message that an edit changes; none where nothing changes.
fn change(
    edit: &Edit,
    subject: &Subject<'_, '_, '_>,
    out: &mut Vec<u8>,
) -> Result<Option<Message>, Failure> {
    match edit {
        Edit::Metric(_) | Edit::SpanName { .. } => Ok(None),
        Edit::Set(path, value) => match value.get(subject)? {
            Value::Nil => Ok(None),
            value => write(path, &value, subject, out),
        },
        Edit::DeleteKey(path, key) => delete_key(path, key, subject, out),
        Edit::DeleteMatching {
            map: path,
            pattern,
            keep,
        } => map::edit(path, subject, out, |list| {
            map::retain(list, |key| pattern.is_match(key) == *keep);
            Ok(())
        }),
        Edit::KeepKeys(path, keys) => {
            let keys = texts(keys, subject)?;
            map::edit(path, subject, out, |list| {
                map::retain(list, |key| keys.iter().any(|kept| kept == key));
                Ok(())
            })
        }
        Edit::Limit {
            map: path,
            limit,
            priority,
        } => {
            let priority = texts(priority, subject)?;
            map::edit(path, subject, out, |list| {
                map::limit(list, *limit, &priority);
                Ok(())
            })
        }
        Edit::TruncateAll {
            map: path,
            limit,
            whole,
            marker,
        } => map::edit(path, subject, out, |list| {
            map::truncate(list, *limit, *whole, marker);
            Ok(())
        }),
        Edit::Replace(path, replace) => {
            let replacement = replace.replacement(subject)?;
            let Value::Text(text) = path.get(subject)? else {
                return Ok(None);
            };
            match replace.apply(&text, &replacement)? {
                Some(text) => write(path, &Value::text(text), subject, out),
                None => Ok(None),
            }
        }
        Edit::ReplaceAll {
            map: path,
            keys,
            replace,
        } => {
            let replacement = replace.replacement(subject)?;
            map::edit(path, subject, out, |list| match keys {
                true => map::replace_keys(list, replace, &replacement),
                false => map::replace_values(list, replace, &replacement),
            })
        }
        Edit::MergeMaps {
            map: path,
            source,
            strategy,
        } => {
            let source = source.get(subject)?;
            if !matches!(source, Value::Map(..)) {
                return Err(Failure::Type);
            }
            map::edit(path, subject, out, |list| {
                map::merge(list, &source, *strategy);
                Ok(())
            })
        }
        Edit::Append(path, values) => {
            let appended = list::appended(&path.get(subject)?, values, subject)?;
            write(path, &appended, subject, out)
        }
        Edit::DeleteIndex(path, start, end) => {
            let left = list::deleted(&path.get(subject)?, start, end.as_ref(), subject)?;
            write(path, &left, subject, out)
        }
        Edit::Flatten {
            map: path,
            prefix,
            depth,
        } => map::edit(path, subject, out, |list| {
            map::flatten(list, prefix, *depth);
            Ok(())
        }),
        Edit::StringifyAll(path) => map::edit(path, subject, out, |list| {
            map::stringify(list);
            Ok(())
        }),
    }
}

fn delete_key(
    path: &Path,
    key: &Term,
    subject: &Subject<'_, '_, '_>,
    out: &mut Vec<u8>,
) -> Result<Option<Message>, Failure> {
    let Value::Text(key) = key.get(subject)? else {
        return Err(Failure::Type);
    };
    // Most keys are not there: then nothing is read twice.
    let map = path.get(subject)?;
    if matches!(map, Value::Map(..)) && map.entries().all(|(name, _)| *name != *key) {
        return Ok(None);
    }
    map::edit(path, subject, out, |list| {
        if let Some(place) = list.find(&key) {
            list.remove(place);
        }
        Ok(())
    })
}

/// Writes a value where a path leads.
fn write(
    path: &Path,
    value: &Value<'_>,
    subject: &Subject<'_, '_, '_>,
    out: &mut Vec<u8>,
) -> Result<Option<Message>, Failure> {
    let (message, form) = path.written(subject);
    let before = message.bytes(subject);
    match form {
        Form::Nothing => return Ok(None),
        Form::Any(_) => {
            let mut any = Vec::new();
            value.encode(&mut any)?;
            map::put_at(before, form, &path.keys(subject)?, &any, out)?;
        }
        Form::Attributes(_) if path.has_keys() => {
            let mut any = Vec::new();
            value.encode(&mut any)?;
            map::put_at(before, form, &path.keys(subject)?, &any, out)?;
        }
        Form::Attributes(key) => {
            if !matches!(value, Value::Map(..)) {
                return Err(Failure::Type);
            }
            map::replace(before, key, value, out)?;
        }
        form => scalar::write(before, form, &path.keys(subject)?, value, out)?,
    }
    Ok((out != before).then_some(message))
}
