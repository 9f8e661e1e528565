package convert

import (
	"context"
	"slices"

	"kvferry/convert/work"
)

// starting are the phases that open the source, and reading those before the first record is read.
var (
	starting = []phase{
		{step: preparation, weight: 0.3},
		{name: "opened", run: (*attempt).openSource},
	}
	reading = slices.Concat(starting, []phase{{name: "identified", step: "plan", weight: 0.01, run: (*attempt).identify}})
)

// building is a conversion up to a target that is complete in the work directory.
var building = slices.Concat(
	[]phase{{undo: (*attempt).abandon}, {name: "reached", when: (*Options).uploads, run: (*attempt).reach}}, reading, []phase{
		{name: "continued", done: (*attempt).unmade, run: (*attempt).takeOver},
		{name: "restored", done: (*attempt).isMade, run: (*attempt).restore},
		{name: "planned", done: (*attempt).isPlanned, run: (*attempt).planNew, entry: (*attempt).planned},
		{name: "adopted", done: (*attempt).isNew, run: (*attempt).takeUp},
		{name: "roomy", done: (*attempt).isMade, run: (*attempt).checkSpace},
		{name: "looked", step: "look", weight: 0.5, sized: true, when: (*Options).renames, done: (*attempt).isMade,
			run: (*attempt).findRenames},
		{name: "counted", step: "count", weight: 0.3, sized: true, when: (*Options).onServer, done: (*attempt).isMade,
			run: (*attempt).foresee},
		{name: "converted", step: "convert", weight: 1, sized: true, done: (*attempt).isMade, run: (*attempt).transfer,
			took: func(t *Timings) *float64 { return &t.Run }},
		{step: "finish", weight: 0.05, when: (*Options).inParts, done: (*attempt).isMade},
		{step: "finish", weight: 0.4, when: (*Options).inFile, done: (*attempt).isMade},
		{name: "finish", done: (*attempt).isMade, run: (*attempt).checkTasks,
			entry: func(*attempt) work.Entry { return work.Entry{Finishing: true} }, took: finishing},
		{name: "kept", done: (*attempt).isMade, run: (*attempt).keep, took: finishing},
		{step: "fetch", weight: 0.3, when: (*Options).fetches, done: (*attempt).isMade},
		{name: "finished", done: (*attempt).isMade, run: (*attempt).finish, entry: (*attempt).written, took: finishing},
	})

// assembly leaves the target of all parts in the work directory, where processes may prove it.
var assembly = append(slices.Clone(building), phase{name: "scanned", run: (*attempt).shareScan},
	phase{name: "closed", run: (*attempt).leave})

// conversion is a conversion to its end. The proof reads written data, which is compressed already.
var conversion = slices.Concat(building, []phase{
	{step: "prove", weight: 0.35, sized: true, when: (*Options).compares},
	{name: "proved", run: (*attempt).conclude, took: func(t *Timings) *float64 { return &t.Prove }},
	{name: "noted", step: "publish", weight: 0.01, run: (*attempt).writeReport,
		entry: func(*attempt) work.Entry { return work.Entry{Proved: true} }},
	{name: "closed", run: (*attempt).leave},
	{name: "publish", when: (*Options).local, run: (*attempt).sync},
	{name: "uploaded", step: "upload", weight: 1, sized: true, when: (*Options).uploads, run: (*attempt).upload},
	{name: "reported", run: (*attempt).publishReport, undo: (*attempt).withdrawReport},
	{name: "renamed", when: (*Options).onDisk, run: (*attempt).appear},
	{name: "appeared", when: (*Options).uploads, final: true, run: (*attempt).noteUploaded},
	{name: "concluded", final: true, run: func(a *attempt, _ context.Context) error { return a.work.Conclude() }},
})

// partial is the work on one part of a plan: its tasks end in a directory of their own.
var partial = slices.Concat([]phase{{undo: (*attempt).abandon}}, reading, []phase{
	{name: "planned", done: (*attempt).isPlanned, run: (*attempt).planNew},
	{name: "shared", done: (*attempt).isPlanned, run: (*attempt).share},
	{name: "noted", run: (*attempt).note},
	{name: "created", done: (*attempt).isNew, run: (*attempt).begin},
	{name: "roomy", run: (*attempt).checkSpace},
	{name: "looked", step: "look", weight: 0.5, sized: true, when: (*Options).renames, run: (*attempt).findRenames},
	{name: "converted", step: "convert", weight: 1, sized: true, run: (*attempt).transfer,
		took: func(t *Timings) *float64 { return &t.Run }},
	{name: "closed", step: "publish", weight: 0.01, run: (*attempt).leave},
	{name: "published", run: (*attempt).publishPart},
})

func finishing(t *Timings) *float64 { return &t.Finish }

// planning are the phases of a conversion that writes nothing, before it reads records; counting are those that
// read all of them.
var (
	planning = append(slices.Clone(reading), phase{name: "planned", run: (*attempt).planTrial})
	counting = []phase{
		{name: "looked", step: "look", weight: 0.5, sized: true, when: (*Options).renames,
			run: (*attempt).findRenames},
		{name: "read", step: "read", weight: 1, sized: true, run: (*attempt).count,
			took: func(t *Timings) *float64 { return &t.Run }},
	}
)
