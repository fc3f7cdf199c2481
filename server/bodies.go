package server

import "tidemark/client"

// The bodies of requests and answers are those of the Go client, so that both always agree.
type (
	Promoted          = client.Promoted
	StorageFolder     = client.StorageFolder
	alertPause        = client.AlertPause
	checkAnswer       = client.CheckAnswer
	checkRequest      = client.CheckRequest
	commandAnswer     = client.CommandAnswer
	commandRequest    = client.CommandRequest
	document          = client.Document
	globalMacro       = client.GlobalMacro
	globalMacroBody   = client.GlobalMacroBody
	holdState         = client.HoldState
	hostProxy         = client.HostProxy
	hostShare         = client.HostShare
	itemTest          = client.ItemTest
	previewItem       = client.PreviewItem
	previewProblem    = client.PreviewProblem
	purgeAnswer       = client.PurgeAnswer
	purgeRequest      = client.PurgeRequest
	queueItem         = client.QueueItem
	queueKind         = client.QueueKind
	recompressRequest = client.RecompressRequest
	regexpTested      = client.RegexpTested
	retentionBody     = client.RetentionBody
	shadowState       = client.ShadowState
	storageClass      = client.StorageClass
	storagePair       = client.StoragePair
	storageTier       = client.StorageTier
	testedStep        = client.TestedStep
	Pool              = client.StoragePool
	digestAnswer      = client.Digest
	hostShares        = client.HostShares
	interfaceState    = client.Interface
	itemTested        = client.ItemTested
	queueAnswer       = client.Queue
	queueType         = client.QueueType
	retentionAnswer   = client.Retention
	scenarioStepView  = client.WebScenarioStep
	scenarioView      = client.WebScenario
	snapshotAnswer    = client.Snapshot
	snapshotList      = client.SnapshotList
	templateRow       = client.ConfigurationRow
	templateRows      = client.ConfigurationList
	tlsSettings       = client.TLSSettings
	proxyInfo         = client.Proxy
	proxyList         = client.ProxyList
	newProxy          = client.NewProxy
)
