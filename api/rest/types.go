package rest

import (
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"tidemark/client"
	"tidemark/model"
	"tidemark/query"
)

// The bodies of requests and answers are those of the Go client, so that both always agree.
type (
	Tag                = client.Tag
	Macro              = client.Macro
	Host               = client.Host
	HostList           = client.HostList
	Item               = client.Item
	Step               = client.Step
	ItemList           = client.ItemList
	Reading            = client.Reading
	Value              = client.Value
	LogParts           = client.LogParts
	ValueList          = client.ValueList
	Chart              = client.Chart
	ChartSeries        = client.ChartSeries
	Problem            = client.Problem
	Suppression        = client.Suppression
	Link               = client.Link
	ProblemList        = client.ProblemList
	Trigger            = client.Trigger
	TriggerList        = client.TriggerList
	SearchResult       = client.SearchResult
	SearchAnswer       = client.SearchAnswer
	Overview           = client.Overview
	HostCounts         = client.HostCounts
	Store              = client.Store
	Numbers            = client.Numbers
	ProblemsUpdate     = client.ProblemsUpdate
	ProblemsUpdated    = client.ProblemsUpdated
	Alert              = client.Alert
	AlertList          = client.AlertList
	AlertTest          = client.AlertTest
	AlertTestAnswer    = client.AlertTestAnswer
	AuditEntry         = client.AuditEntry
	AuditList          = client.AuditList
	DashboardAnswer    = client.DashboardAnswer
	DashboardBody      = client.DashboardBody
	DashboardHead      = client.DashboardHead
	DashboardList      = client.DashboardList
	DiscoveredObject   = client.DiscoveredObject
	DiscoveryRule      = client.DiscoveryRule
	DiscoveryRuleList  = client.DiscoveryRuleList
	EarlierProblem     = client.EarlierProblem
	FirstAdministrator = client.FirstAdministrator
	Grant              = client.Grant
	Graph              = client.Graph
	GraphList          = client.GraphList
	HourList           = client.HourList
	HourPoint          = client.HourPoint
	ItemStates         = client.ItemStates
	Login              = client.Login
	MadeToken          = client.MadeToken
	Me                 = client.Me
	MongoChange        = client.MongoChange
	MongoComparison    = client.MongoComparison
	MongoErrorCode     = client.MongoErrorCode
	MongoHeat          = client.MongoHeat
	MongoInstance      = client.MongoInstance
	MongoInstanceList  = client.MongoInstanceList
	MongoInstanceTotal = client.MongoInstanceTotal
	MongoNames         = client.MongoNames
	MongoPlan          = client.MongoPlan
	MongoTrial         = client.MongoTrial
	MongoIndex         = client.MongoIndex
	MongoHint          = client.MongoHint
	MongoProfile       = client.MongoProfile
	MongoRange         = client.MongoRange
	MongoRanking       = client.MongoRanking
	MongoRow           = client.MongoRow
	MongoSums          = client.MongoSums
	NewToken           = client.NewToken
	OwnPassword        = client.OwnPassword
	ProblemDetail      = client.ProblemDetail
	ProblemMark        = client.ProblemMark
	State              = client.State
	StateList          = client.StateList
	Token              = client.Token
	TokenList          = client.TokenList
	User               = client.User
	UserBody           = client.UserBody
	UserGroup          = client.UserGroup
	UserGroupBody      = client.UserGroupBody
	UserGroupList      = client.UserGroupList
	UserList           = client.UserList
)

// formatValue gives a value its lossless form.
func formatValue(v *query.Value) Value {
	out := Value{T: v.Type.String(), V: valueText(v)}
	if !utf8.ValidString(out.V) {
		out.V, out.Encoding = base64.StdEncoding.EncodeToString([]byte(out.V)), "base64"
	}
	if v.Type == model.LogEntry {
		if l, err := model.DecodeLog(v.Bytes); err == nil {
			out.Log = &LogParts{At: l.At * 1000, Severity: l.Severity, EventID: l.EventID, Source: l.Source}
		}
	}
	return out
}

func valueText(v *query.Value) string {
	switch v.Type {
	case model.Float:
		return string(client.AppendFloat(nil, math.Float64frombits(v.Bits)))
	case model.Uint:
		return strconv.FormatUint(v.Bits, 10)
	case model.Binary:
		return base64.StdEncoding.EncodeToString(v.Bytes)
	case model.LogEntry:
		if text, err := model.LogText(v.Bytes); err == nil {
			return string(text)
		}
	}
	return string(v.Bytes)
}

func formatReading(v *query.Value) *Reading {
	if v == nil {
		return nil
	}
	return &Reading{AtNS: strconv.FormatInt(v.At, 10), At: floorMillis(v.At), Value: formatValue(v)}
}

// floorMillis rounds down, also before 1970.
func floorMillis(nanos int64) int64 {
	ms := nanos / 1e6
	if nanos%1e6 < 0 {
		ms--
	}
	return ms
}

// optionalMillis is nil for zero.
func optionalMillis(nanos int64) *int64 {
	if nanos == 0 {
		return nil
	}
	ms := floorMillis(nanos)
	return &ms
}

func formatID[T ~uint64](id T) string { return strconv.FormatUint(uint64(id), 10) }

func formatTags(tags []model.Tag) []Tag {
	out := make([]Tag, 0, len(tags))
	for _, t := range tags {
		out = append(out, Tag{Tag: t.Name, Value: t.Value})
	}
	return out
}

func labelMap(labels model.Labels) map[string]string {
	out := make(map[string]string, len(labels))
	for _, l := range labels {
		out[l.Name] = l.Value
	}
	return out
}
