"""The messages of bfruntime.proto, one line a field: number, name, type.

A type with * is repeated. "in NAME": the field is part of the oneof NAME. A dotted message is
declared within the other. An enum has the numbers and names of its values.
"""

MESSAGES = """
message WriteRequest
  1 target TargetDevice
  2 client_id uint32
  3 updates Update*
  4 atomicity WriteRequest.Atomicity
  5 p4_name string
enum WriteRequest.Atomicity
  0 CONTINUE_ON_ERROR
  1 ROLLBACK_ON_ERROR
  2 DATAPLANE_ATOMIC
message WriteResponse
  1 status Error*
message ReadRequest
  1 target TargetDevice
  2 client_id uint32
  3 entities Entity*
  4 p4_name string
message ReadResponse
  1 entities Entity*
  2 status Error*
message TargetDevice
  1 device_id uint32
  2 pipe_id uint32
  3 direction uint32
  4 prsr_id uint32
message Update
  1 type Update.Type
  2 entity Entity
enum Update.Type
  0 UNSPECIFIED
  1 INSERT
  2 MODIFY
  3 MODIFY_INC
  4 DELETE
  5 INSERT_OR_MODIFY
  6 RESET
message Entity
  1 table_entry TableEntry in entity
  2 table_usage TableUsage in entity
  3 table_attribute TableAttribute in entity
  4 table_operation TableOperation in entity
  5 object_id ObjectId in entity
  6 handle HandleId in entity
message HandleId
  1 table_id uint32
  2 key TableKey in value
  3 handle_id uint32 in value
message TableEntry
  1 table_id uint32
  2 key TableKey in value
  7 handle_id uint32 in value
  3 data TableData
  4 is_default_entry bool
  5 table_read_flag TableReadFlag
  6 table_mod_inc_flag TableModIncFlag
  8 entry_tgt TargetDevice
  9 table_flags TableFlags
message TableUsage
  1 table_id uint32
  2 usage uint32
  3 table_read_flag TableReadFlag
  4 table_flags TableFlags
message TableAttribute
  1 table_id uint32
  2 idle_table IdleTable in attribute
  3 entry_scope EntryScope in attribute
  4 dyn_key_mask DynKeyMask in attribute
  5 dyn_hashing DynHashing in attribute
  6 byte_count_adj ByteCountAdj in attribute
  7 port_status_notify PortStatusChg in attribute
  8 intvl_ms StatePullIntvl in attribute
  9 pre_device_config PreDeviceConfig in attribute
  10 selector_update_notify SelectorUpdateCb in attribute
message TableOperation
  1 table_id uint32
  2 table_operations_type string
message TableData
  1 action_id uint32
  2 fields DataField*
message DataField
  1 field_id uint32
  2 stream bytes in value
  3 float_val float in value
  4 str_val string in value
  5 int_arr_val DataField.IntArray in value
  6 bool_arr_val DataField.BoolArray in value
  7 container_arr_val DataField.ContainerArray in value
  8 bool_val bool in value
  9 str_arr_val DataField.StrArray in value
message DataField.IntArray
  1 val uint32*
message DataField.BoolArray
  1 val bool*
message DataField.StrArray
  1 val string*
message DataField.ContainerArray
  1 container DataField.ContainerArray.Container*
message DataField.ContainerArray.Container
  1 val DataField*
message TableKey
  1 fields KeyField*
message KeyField
  1 field_id uint32
  2 exact KeyField.Exact in match_type
  3 ternary KeyField.Ternary in match_type
  4 lpm KeyField.LPM in match_type
  5 range KeyField.Range in match_type
  6 optional KeyField.Optional in match_type
message KeyField.Exact
  1 value bytes
message KeyField.Ternary
  1 value bytes
  2 mask bytes
message KeyField.LPM
  1 value bytes
  2 prefix_len int32
message KeyField.Range
  1 low bytes
  2 high bytes
message KeyField.Optional
  1 value bytes
  2 is_valid bool
message TableReadFlag
  1 from_hw bool
  2 key_only bool
message TableFlags
  1 from_hw bool
  2 key_only bool
  3 mod_del bool
  4 reset_ttl bool
  5 reset_stats bool
message TableModIncFlag
  1 type TableModIncFlag.Type
enum TableModIncFlag.Type
  0 MOD_INC_ADD
  1 MOD_INC_DELETE
message KeyFieldMask
  1 field_id uint32
  2 mask bytes
message DynKeyMask
  1 fields KeyFieldMask*
message DynHashing
  1 alg uint32
  2 seed uint64
message ByteCountAdj
  1 byte_count_adjust int32
message IdleTable
  1 ttl_query_interval uint32
  2 max_ttl uint32
  3 min_ttl uint32
  4 idle_table_mode IdleTable.IdleTableMode
  5 enable bool
enum IdleTable.IdleTableMode
  0 IDLE_TABLE_POLL_MODE
  1 IDLE_TABLE_NOTIFY_MODE
message StatePullIntvl
  1 intvl_val uint32
message PortStatusChg
  1 enable bool
message SelectorUpdateCb
  1 enable bool
message Mode
  1 predef Mode.PredefinedMode in scope
  2 user_defined uint64 in scope
  3 args uint64
enum Mode.PredefinedMode
  0 ALL
  1 SINGLE
message PreGlobalRid
  1 global_rid uint32
message PrePortProtection
  1 enable bool
message PreFastFailover
  1 enable bool
message PreMaxNodesBeforeYield
  1 count uint32
message PreMaxNodeThreshold
  1 node_count uint32
  2 port_lag_count uint32
message PreDeviceConfig
  1 pre_global_rid PreGlobalRid
  2 pre_port_protection PrePortProtection
  3 pre_fast_failover PreFastFailover
  4 pre_max_nodes_before_yield PreMaxNodesBeforeYield
  5 pre_max_node_threshold PreMaxNodeThreshold
message EntryScope
  1 gress_scope Mode
  2 pipe_scope Mode
  3 prsr_scope Mode
message ObjectId
  1 table_object ObjectId.TableObject in object
  2 learn_object ObjectId.LearnObject in object
  3 id uint32
message ObjectId.ActionName
  1 action string
message ObjectId.KeyFieldName
  1 field string
message ObjectId.DataFieldName
  1 action string
  2 field string
message ObjectId.TableObject
  1 table_name string
  2 action_name ObjectId.ActionName in names
  3 key_field_name ObjectId.KeyFieldName in names
  4 data_field_name ObjectId.DataFieldName in names
message ObjectId.LearnObject
  1 learn_name string
  2 data_field_name ObjectId.DataFieldName
message StreamMessageRequest
  1 client_id uint32
  2 subscribe Subscribe in update
  3 digest_ack DigestListAck in update
message Subscribe
  1 is_master bool
  2 device_id uint32
  3 notifications Subscribe.Notifications
  4 status google.rpc.Status
message Subscribe.Notifications
  1 enable_learn_notifications bool
  2 enable_idletimeout_notifications bool
  3 enable_port_status_change_notifications bool
  4 enable_entry_active_notifications bool
  5 enable_selector_update_change_notifications bool
message DigestListAck
  1 digest_id uint32
  2 list_id uint32
message StreamMessageResponse
  1 subscribe Subscribe in update
  2 digest DigestList in update
  3 idle_timeout_notification IdleTimeoutNotification in update
  4 port_status_change_notification PortStatusChgNotification in update
  5 set_forwarding_pipeline_config_response SetForwardingPipelineConfigResponse in update
  6 selector_update_change_notification SelectorUpdateChgNotification in update
message DigestList
  1 digest_id uint32
  2 list_id uint32
  3 data TableData*
  4 target TargetDevice
message IdleTimeoutNotification
  1 target TargetDevice
  2 table_entry TableEntry
  3 type IdleTimeoutNotification.NotificationType
enum IdleTimeoutNotification.NotificationType
  0 ENTRY_ACTIVE
  1 ENTRY_IDLE
message PortStatusChgNotification
  1 table_entry TableEntry
  2 port_up bool
message SelectorUpdateChgNotification
  1 sel_group_id uint32
  2 act_member_id uint32
  3 logical_entry_index uint32
  4 is_add bool
message SetForwardingPipelineConfigRequest
  1 device_id uint32
  2 client_id uint32
  3 action SetForwardingPipelineConfigRequest.Action
  4 dev_init_mode SetForwardingPipelineConfigRequest.DevInitMode
  5 base_path string
  6 config ForwardingPipelineConfig*
enum SetForwardingPipelineConfigRequest.Action
  0 BIND
  1 VERIFY
  2 VERIFY_AND_WARM_INIT_BEGIN
  3 VERIFY_AND_WARM_INIT_BEGIN_AND_END
  4 WARM_INIT_END
  5 RECONCILE_AND_WARM_INIT_END
enum SetForwardingPipelineConfigRequest.DevInitMode
  0 FAST_RECONFIG
  1 HITLESS
enum SetForwardingPipelineConfigResponseType
  0 WARM_INIT_STARTED
  1 WARM_INIT_FINISHED
message SetForwardingPipelineConfigResponse
  1 set_forwarding_pipeline_config_response_type SetForwardingPipelineConfigResponseType
message ForwardingPipelineConfig
  1 p4_name string
  2 bfruntime_info bytes
  3 profiles ForwardingPipelineConfig.Profile*
message ForwardingPipelineConfig.Profile
  1 profile_name string
  2 context bytes
  3 binary bytes
  4 pipe_scope uint32*
message NonP4Config
  1 bfruntime_info bytes
message GetForwardingPipelineConfigRequest
  1 device_id uint32
  2 client_id uint32
message GetForwardingPipelineConfigResponse
  1 config ForwardingPipelineConfig*
  2 non_p4_config NonP4Config
message Error
  1 canonical_code int32
  2 message string
  3 space string
  4 code int32
"""
