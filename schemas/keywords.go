package schemas

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// form is what a keyword of JSON Schema has as its value.
type form int

const (
	formAny form = iota // any value; also of a keyword that is not known
	formSchema
	formSchemaOrList // items and dependencies before 2020-12 have lists, too
	formSchemaList
	formSchemaMap
	formCount
	formNumber
	formText
	formFlag
	formNames
	formNameMap
	formType
	formList
)

// keywords are the known ones with their forms.
var keywords = map[string]form{
	"additionalProperties": formSchema, "additionalItems": formSchema, "not": formSchema, "if": formSchema, "then": formSchema, "else": formSchema, "contains": formSchema,
	"propertyNames": formSchema, "unevaluatedItems": formSchema, "unevaluatedProperties": formSchema, "contentSchema": formSchema, "items": formSchemaOrList,
	"allOf": formSchemaList, "anyOf": formSchemaList, "oneOf": formSchemaList, "prefixItems": formSchemaList,
	"properties": formSchemaMap, "patternProperties": formSchemaMap, "$defs": formSchemaMap, "definitions": formSchemaMap, "dependentSchemas": formSchemaMap,
	"maxLength": formCount, "minLength": formCount, "maxItems": formCount, "minItems": formCount, "maxProperties": formCount, "minProperties": formCount, "maxContains": formCount, "minContains": formCount,
	"maximum": formNumber, "minimum": formNumber, "exclusiveMaximum": formNumber, "exclusiveMinimum": formNumber, "multipleOf": formNumber,
	"title": formText, "description": formText, "$comment": formText, "pattern": formText, "format": formText, "$ref": formText, "$anchor": formText, "$dynamicAnchor": formText, "$dynamicRef": formText,
	"$recursiveRef": formText, "$id": formText, "contentEncoding": formText, "contentMediaType": formText,
	"uniqueItems": formFlag, "deprecated": formFlag, "readOnly": formFlag, "writeOnly": formFlag, "$recursiveAnchor": formFlag,
	"required": formNames, "dependentRequired": formNameMap, "type": formType, "enum": formList, "examples": formList,
}

var simpleTypes = []any{"array", "boolean", "integer", "null", "number", "object", "string"}

// fits reports whether a value has the form of its keyword. Schemas in it are judged by themselves.
func (f form) fits(keyword string, v any) bool {
	switch f { //nolint:exhaustive // anything fits formAny
	case formSchema:
		return isSchema(v)
	case formSchemaOrList:
		list, ok := v.([]any)
		return isSchema(v) || ok && len(list) > 0
	case formSchemaList:
		list, ok := v.([]any)
		return ok && len(list) > 0
	case formSchemaMap:
		_, ok := v.(map[string]any)
		return ok
	case formCount, formNumber:
		n, ok := v.(json.Number)
		if !ok || !reasonable(string(n)) {
			return false
		}
		r, ok := new(big.Rat).SetString(string(n))
		return ok && (f == formNumber || r.IsInt() && r.Sign() >= 0) && (keyword != "multipleOf" || r.Sign() > 0)
	case formText:
		_, ok := v.(string)
		return ok
	case formFlag:
		_, ok := v.(bool)
		return ok
	case formNames:
		return isNames(v)
	case formNameMap:
		m, ok := v.(map[string]any)
		for _, x := range m {
			ok = ok && isNames(x)
		}
		return ok
	case formType:
		list, ok := v.([]any)
		return slices.Contains(simpleTypes, v) || ok && len(list) > 0 && !slices.ContainsFunc(list, func(x any) bool { return !slices.Contains(simpleTypes, x) })
	case formList:
		_, ok := v.([]any)
		return ok
	}
	return true
}

func isSchema(v any) bool {
	switch v.(type) {
	case map[string]any, bool:
		return true
	}
	return false
}

func isNames(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(x any) bool { _, text := x.(string); return !text })
}

// eachSchema calls do for a schema and all schemas in it, the outer ones first, with their pointers.
// Data, such as a default, is none.
func eachSchema(v any, at string, do func(node map[string]any, at string)) {
	node, ok := v.(map[string]any)
	if !ok {
		return
	}
	do(node, at)
	for name, v := range node {
		at := at + "/" + Escape(name)
		switch keywords[name] { //nolint:exhaustive // the others have no schemas
		case formSchema:
			eachSchema(v, at, do)
		case formSchemaList, formSchemaOrList:
			if list, ok := v.([]any); ok {
				for i, x := range list {
					eachSchema(x, at+"/"+strconv.Itoa(i), do)
				}
			} else {
				eachSchema(v, at, do)
			}
		case formSchemaMap:
			if members, ok := v.(map[string]any); ok {
				for name, x := range members {
					eachSchema(x, at+"/"+Escape(name), do)
				}
			}
		}
	}
}

// Ordered is a schema with the lists in order that have none: required, enum and type. So that
// a server may list them in any, all orders of one schema are the same text.
func Ordered(source json.RawMessage) json.RawMessage {
	tree, err := Decode(source)
	if err != nil {
		return source
	}
	eachSchema(tree, "", func(node map[string]any, _ string) {
		for _, name := range []string{"required", "enum", "type"} {
			if list, ok := node[name].([]any); ok {
				node[name] = inOrder(list)
			}
		}
	})
	raw, err := json.Marshal(tree)
	if err != nil {
		return source
	}
	return raw
}

// inOrder sorts values by their JSON.
func inOrder(list []any) []any {
	texts := make(map[int]string, len(list))
	order := make([]int, len(list))
	for i, v := range list {
		raw, _ := json.Marshal(v) // it was JSON
		order[i], texts[i] = i, string(raw)
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(texts[a], texts[b]) })
	out := make([]any, len(list))
	for to, from := range order {
		out[to] = list[from]
	}
	return out
}
