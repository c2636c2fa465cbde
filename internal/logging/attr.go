package logging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
)

// attr is an attribute without data that must not be logged, at any depth.
func attr(a slog.Attr) slog.Attr {
	if secretName.MatchString(a.Key) && a.Value.Kind() != slog.KindGroup {
		return slog.String(a.Key, removedKey)
	}
	return slog.Attr{Key: Text(a.Key), Value: value(a.Value.Resolve())}
}

func value(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(Text(v.String()))
	case slog.KindInt64, slog.KindUint64: // a card's number is one too
		if text := v.String(); Text(text) != text {
			return slog.StringValue(Text(text))
		}
		return v
	case slog.KindGroup:
		var out []slog.Attr
		for _, a := range v.Group() {
			out = append(out, attr(a))
		}
		return slog.GroupValue(out...)
	case slog.KindAny, slog.KindLogValuer:
		return anyValue(v.Any())
	case slog.KindBool, slog.KindDuration, slog.KindFloat64, slog.KindTime:
	}
	return v
}

// anyValue is a value as JSON, so that nothing hides in a member.
func anyValue(v any) slog.Value {
	switch v := v.(type) {
	case nil:
		return slog.AnyValue(nil)
	case error:
		return slog.StringValue(Text(v.Error()))
	case *slog.Source:
		return slog.AnyValue(v)
	case []byte:
		return slog.StringValue(Text(string(v)))
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return slog.StringValue(Text(fmt.Sprintf("%+v", v)))
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return slog.StringValue(Text(string(raw)))
	}
	return slog.AnyValue(clean(tree))
}

// clean redacts a tree of JSON.
func clean(v any) any {
	switch v := v.(type) {
	case string:
		return Text(v)
	case json.Number:
		if text := Text(v.String()); text != v.String() {
			return text
		}
		return v
	case []any:
		for i := range v {
			v[i] = clean(v[i])
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			if secretName.MatchString(name) {
				out[name] = removedKey
			} else {
				out[Text(name)] = clean(member)
			}
		}
		return out
	}
	return v
}
